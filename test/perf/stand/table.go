// SPDX-License-Identifier: Apache-2.0

package stand

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/audit"
	"github.com/regatta-sh/regatta/test/perf/measure"
	"github.com/regatta-sh/regatta/test/perf/report"
)

// Header are the columns of Row, for things such as nodes.
func Header(thing string) []string {
	return []string{"phase", thing + "s", "seconds", "writes a " + thing, "failed", "CPU s", "MiB", "foreign CPU s"}
}

// Row describes a phase: its writes are those of the manager, and its memory is the most that the manager had. Foreign
// CPU time is the noise: that of neither the cluster, the manager nor the program.
func (p Phase) Row() []string {
	row := []string{p.Name, fmt.Sprint(p.Things), fmt.Sprintf("%.1f", p.Seconds), "-", "-", "-", "-", fmt.Sprintf("%.1f", p.CPUSeconds["foreign"])}
	if p.Writes != nil {
		row[3], row[4] = fmt.Sprintf("%.2f", p.Writes.PerPod), fmt.Sprint(p.Writes.Failed)
	}
	if p.Process != nil {
		row[5], row[6] = fmt.Sprintf("%.1f", p.Process.CPUSeconds), fmt.Sprintf("%.0f", float64(p.Process.ResidentBytesMax)/(1<<20))
	}
	return row
}

// AgentsHeader are the columns of AgentsRow, for things such as nodes.
func AgentsHeader(thing string) []string { return []string{"agents' writes a " + thing, "failed"} }

// AgentsRow tells what agents of nodes wrote in a phase.
func (p Phase) AgentsRow() []string {
	if p.Agents == nil {
		return []string{"-", "-"}
	}
	return []string{fmt.Sprintf("%.2f", p.Agents.PerPod), fmt.Sprint(p.Agents.Failed)}
}

// Requests is a table of what was written in phases, by the manager and by agents of nodes, the most frequent first.
func Requests(phases []Phase) string {
	var rows [][]string
	for _, p := range phases {
		for _, by := range []struct {
			who    string
			writes *report.Writes
		}{{"manager", p.Writes}, {"agents", p.Agents}} {
			if by.writes == nil {
				continue
			}
			for _, r := range by.writes.Requests {
				rows = append(rows, []string{p.Name, by.who, r.Verb + " " + r.Resource, fmt.Sprint(r.Writes), fmt.Sprintf("%.2f", r.PerPod), fmt.Sprint(r.Failed)})
			}
		}
	}
	return report.Markdown([]string{"phase", "who", "request", "number", "each", "failed"}, rows)
}

// byAgents counts what agents of nodes wrote in a span of time, for so many things.
func (s *Stand) byAgents(since, until time.Time, things int) (*report.Writes, error) {
	if s.Options.Agents == "" {
		return nil, nil
	}
	w := &report.Writes{}
	all := map[string]*report.Request{}
	err := audit.Each(s.Target.AuditLog, audit.Filter{Since: since, Until: until}, func(e audit.Event) {
		if e.Agent != s.Options.Agents {
			return
		}
		r := &report.Request{Verb: e.Verb, Resource: e.Object.Resource}
		if e.Object.Subresource != "" {
			r.Resource += "/" + e.Object.Subresource
		}
		if known := all[r.Verb+" "+r.Resource]; known != nil {
			r = known
		}
		all[r.Verb+" "+r.Resource] = r
		r.Writes++
		w.Total++
		if e.Response.Code >= 400 {
			r.Failed++
			w.Failed++
		}
	})
	if err != nil {
		return nil, err
	}
	w.PerPod = float64(w.Total) / float64(things)
	for _, r := range all {
		r.PerPod = float64(r.Writes) / float64(things)
		w.Requests = append(w.Requests, *r)
	}
	slices.SortFunc(w.Requests, func(a, b report.Request) int {
		return cmp.Or(-cmp.Compare(a.Writes, b.Writes), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return w, nil
}

// Times describes durations by three of them: the median, the 99th percentile, and the longest.
func Times(all []time.Duration) string {
	if len(all) == 0 {
		return "-"
	}
	seconds := make([]float64, len(all))
	for i, d := range slices.Sorted(slices.Values(all)) {
		seconds[i] = d.Seconds()
	}
	s := measure.Spread(seconds)
	return fmt.Sprintf("%.2f / %.2f / %.2f s", s.Median, s.P99, s.Max)
}
