// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// JSON writes the document.
func (d Document) JSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Table writes what people want to see first.
func (d Document) Table(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "\n%s %s, user %s; %s on %d nodes; %d CPUs, load %.1f to %.1f; %s\n\n",
		d.Subject.Name, d.Subject.Version, d.Subject.User, d.Cluster.Kubernetes, d.Cluster.Nodes,
		d.Machine.CPUs, d.Machine.LoadBefore, d.Machine.LoadAfter, d.Started.UTC().Format("2006-01-02 15:04"))
	if len(d.Runs) > 0 {
		fmt.Fprintln(table, "run\tdelay\tworkload\tphase\tseconds\tof yardstick\tmissing, mean/most\twrites a pod\ton pods\tof status\tfailed\tcreate p50/p99 ms\tCPU s\tMiB\treconciles\tload\tforeign CPU s\t")
	}
	for _, run := range d.Runs {
		for _, p := range run.Phases {
			ratio := "-"
			if p.OfYardstick != nil {
				ratio = fmt.Sprintf("%.2f", *p.OfYardstick)
			}
			fmt.Fprintf(table, "%d\t%.1f\t%s\t%s\t%.1f\t%s\t%.0f/%d\t%s\t\n", run.Number, run.DelaySeconds, run.Workload, p.Name, p.Seconds, ratio, p.MeanMissing, p.MostMissing, p.Usage.row())
		}
	}
	if d.Scale != nil {
		fmt.Fprintf(table, "%d x %d pods\tseconds\tfirst: min\tmedian\tp99\tmax\tcomplete: min\tmedian\tp99\tmax\twrites a pod\ton pods\tof status\tfailed\tcreate p50/p99 ms\tCPU s\tMiB\treconciles\tload\tforeign CPU s\t\n", d.Scale.Workloads, d.Scale.Pods)
		for _, p := range d.Scale.Phases {
			fmt.Fprintf(table, "%s\t%.1f\t%s\t%s\t%s\t\n", p.Name, p.Seconds, p.First.row(), p.Complete.row(), p.Usage.row())
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	d.idle(out)
	return nil
}

// idle tells what was done while nothing had changed.
func (d Document) idle(out io.Writer) {
	for _, run := range d.Runs {
		for _, p := range run.Phases {
			if h := p.Heartbeats; h != nil {
				fmt.Fprintf(out, "\n%s, %s for %.0f s on %d nodes: %d heartbeats of nodes and %d of leases. Reconciles: %s\n",
					run.Workload, p.Name, p.Seconds, d.Cluster.Nodes, h.Statuses, h.Leases, counts(p.Controllers))
			}
		}
	}
}

// counts are numbers with their names, the largest first.
func counts(all map[string]float64) string {
	if len(all) == 0 {
		return "none, of any controller"
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %.0f", name, all[name])
	}
	return strings.Join(names, ", ")
}

func (s Spread) row() string {
	return fmt.Sprintf("%.1f\t%.1f\t%.1f\t%.1f", s.Min, s.Median, s.P99, s.Max)
}

// row is writes, CPU and the like; - stands for what is not known.
func (u Usage) row() string {
	perPod, onPods, onStatus, failed, create, cpu, memory, reconciles := "-", "-", "-", "-", "-", "-", "-", "-"
	if w := u.Writes; w != nil {
		perPod, onPods = fmt.Sprintf("%.2f", w.PerPod), fmt.Sprintf("%.2f", w.OnPodsEach)
		onStatus, failed = strconv.Itoa(w.OnStatus), strconv.Itoa(w.Failed)
		if c := w.CreateMillis; c != nil {
			create = fmt.Sprintf("%.0f/%.0f", c.Median, c.P99)
		}
	}
	if p := u.Process; p != nil {
		cpu, memory = fmt.Sprintf("%.1f", p.CPUSeconds), fmt.Sprintf("%.0f", float64(p.ResidentBytesMax)/(1<<20))
	}
	if u.Reconciles != nil {
		reconciles = fmt.Sprintf("%.0f", *u.Reconciles)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%.1f", perPod, onPods, onStatus, failed, create, cpu, memory, reconciles, u.Load, u.CPUSeconds["foreign"])
}
