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

// Table writes the figures that readers need first.
func (d Document) Table(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "\n%s %s, user %s; %s on %d nodes; %d CPUs, load %.1f to %.1f; %s\n\n",
		d.Subject.Name, d.Subject.Version, d.Subject.User, d.Cluster.Kubernetes, d.Cluster.Nodes,
		d.Machine.CPUs, d.Machine.LoadBefore, d.Machine.LoadAfter, d.Started.UTC().Format("2006-01-02 15:04"))
	if len(d.Runs) > 0 {
		fmt.Fprintln(table, "run\tdelay\tworkload\tphase\tseconds\tof yardstick\tmissing, mean/most\twrites a pod\ton pods\tof status\tdry runs\tfailed\tcreate p50/p99 ms\tCPU s\tMiB\treconciles\tload\tforeign CPU s\t")
	}
	for _, run := range d.Runs {
		for _, p := range run.Phases {
			fmt.Fprintf(table, "%d\t%.1f\t%s\t%s\t%.1f\t%s\t%.0f/%d\t%s\t\n", run.Number, run.DelaySeconds, run.Workload, p.Name, p.Seconds, p.ratio(), p.MeanMissing, p.MostMissing, p.Usage.row())
		}
	}
	if d.Scale != nil {
		fmt.Fprintf(table, "%d x %d pods\tseconds\tfirst: min\tmedian\tp99\tmax\tcomplete: min\tmedian\tp99\tmax\twrites a pod\ton pods\tof status\tdry runs\tfailed\tcreate p50/p99 ms\tCPU s\tMiB\treconciles\tload\tforeign CPU s\t\n", d.Scale.Workloads, d.Scale.Pods)
		for _, p := range d.Scale.Phases {
			fmt.Fprintf(table, "%s\t%.1f\t%s\t%s\t%s\t\n", p.Name, p.Seconds, p.First.row(), p.Complete.row(), p.Usage.row())
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	d.idle(out)
	fmt.Fprintf(out, "\n%s", d.readme())
	return nil
}

// readme is what the README shows of it, as Markdown.
func (d Document) readme() string {
	usage := []string{"writes a pod", "of them on pods", "of status", "dry runs", "CPU s", "MiB", "reconciles"}
	if d.Scale != nil {
		header := []string{fmt.Sprintf("%d x %d pods", d.Scale.Workloads, d.Scale.Pods), "first, median / last, s", "done, first / median / last, s"}
		var rows [][]string
		for _, p := range d.Scale.Phases {
			rows = append(rows, append([]string{
				p.Name, fmt.Sprintf("%.1f / %.1f", p.First.Median, p.First.Max),
				fmt.Sprintf("%.1f / %.1f / %.1f", p.Complete.Min, p.Complete.Median, p.Complete.Max),
			}, p.Usage.readme()...))
		}
		return Markdown(append(header, usage...), rows)
	}
	header := []string{"delay, s", "workload", "phase", "seconds", "of yardstick"}
	var rows [][]string
	for _, run := range d.Runs {
		for _, p := range run.Phases {
			rows = append(rows, append([]string{
				fmt.Sprintf("%.1f", run.DelaySeconds), run.Workload, p.Name, fmt.Sprintf("%.1f", p.Seconds), p.ratio(),
			}, p.Usage.readme()...))
		}
	}
	return Markdown(append(header, usage...), rows)
}

// ratio is how long it took, over the yardstick.
func (p Phase) ratio() string {
	if p.OfYardstick == nil {
		return unknown
	}
	return fmt.Sprintf("%.2f", *p.OfYardstick)
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

// unknown is written for a figure that is not known.
const unknown = "-"

// row is writes, CPU and the like.
func (u Usage) row() string {
	perPod, onPods, onStatus, dryRuns := u.Writes.row()
	failed, create := u.Writes.requests()
	cpu, memory := u.Process.row()
	return strings.Join([]string{
		perPod, onPods, onStatus, dryRuns, failed, create, cpu, memory, u.reconciles(),
		fmt.Sprintf("%.1f", u.Load), fmt.Sprintf("%.1f", u.CPUSeconds["foreign"]),
	}, "\t")
}

// readme is what the README shows of it.
func (u Usage) readme() []string {
	perPod, onPods, onStatus, dryRuns := u.Writes.row()
	cpu, memory := u.Process.row()
	return []string{perPod, onPods, onStatus, dryRuns, cpu, memory, u.reconciles()}
}

func (u Usage) reconciles() string {
	if u.Reconciles == nil {
		return unknown
	}
	return fmt.Sprintf("%.0f", *u.Reconciles)
}

func (w *Writes) row() (perPod, onPods, onStatus, dryRuns string) {
	if w == nil {
		return unknown, unknown, unknown, unknown
	}
	return fmt.Sprintf("%.2f", w.PerPod), fmt.Sprintf("%.2f", w.OnPodsEach), strconv.Itoa(w.OnStatus), strconv.Itoa(w.DryRuns)
}

// requests is how they fared.
func (w *Writes) requests() (failed, create string) {
	if w == nil {
		return unknown, unknown
	}
	create = unknown
	if c := w.CreateMillis; c != nil {
		create = fmt.Sprintf("%.0f/%.0f", c.Median, c.P99)
	}
	return strconv.Itoa(w.Failed), create
}

func (p *Process) row() (cpu, memory string) {
	if p == nil {
		return unknown, unknown
	}
	return fmt.Sprintf("%.1f", p.CPUSeconds), fmt.Sprintf("%.0f", float64(p.ResidentBytesMax)/(1<<20))
}
