// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/test/cluster/audit"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/target"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// writes counts what the users of a kind wrote in a span of time, nil where
// there is no audit log.
func writes(t *target.Target, kind workload.Kind, since, until time.Time, pods int) (*report.Writes, error) {
	if t.AuditLog == "" {
		return nil, nil
	}
	counts, err := audit.Counts(t.AuditLog, audit.Filter{Since: since, Until: until})
	if err != nil {
		return nil, err
	}
	users := t.Users(kind)
	w := summary(slices.DeleteFunc(counts, func(c audit.Count) bool { return !slices.Contains(users, c.User) }), kind, pods)
	err = rates(w, t.AuditLog, users, since, until)
	return w, err
}

// rates counts the requests of users in each second, by their sort, and takes the
// times of those that create pods, from any client.
func rates(w *report.Writes, log string, users []string, since, until time.Time) error {
	w.Rates = map[string][]int{}
	var creates []float64
	seconds := int(until.Sub(since)/time.Second) + 1
	err := audit.Each(log, audit.Filter{Since: since, Until: until}, func(e audit.Event) {
		sort := e.Verb + " " + e.Object.Resource
		if e.Object.Subresource != "" {
			sort += "/" + e.Object.Subresource
		}
		if sort == "create pods" {
			creates = append(creates, float64(e.Done.Sub(e.Time).Microseconds())/1000)
		}
		if !slices.Contains(users, e.User.Username) {
			return
		}
		if w.Rates[sort] == nil {
			w.Rates[sort] = make([]int, seconds)
		}
		w.Rates[sort][int(e.Time.Sub(since)/time.Second)]++
	})
	if len(creates) > 0 {
		spread := Spread(creates)
		w.CreateMillis = &spread
	}
	return err
}

// heartbeats counts those of nodes in a span of time, nil where there is no audit log.
func heartbeats(t *target.Target, since, until time.Time) (*report.Heartbeats, error) {
	if t.AuditLog == "" {
		return nil, nil
	}
	h := &report.Heartbeats{}
	err := audit.Each(t.AuditLog, audit.Filter{Since: since, Until: until}, func(e audit.Event) {
		switch {
		case e.Object.Resource == "nodes" && e.Object.Subresource == "status":
			h.Statuses++
		case e.Object.Resource == "leases" && e.Object.Namespace == corev1.NamespaceNodeLease:
			h.Leases++
		}
	})
	return h, err
}

func summary(counts []audit.Count, kind workload.Kind, pods int) *report.Writes {
	each := func(n int) float64 { return float64(n) / float64(pods) }
	w := &report.Writes{Requests: []report.Request{}}
	for _, c := range counts {
		w.Requests = append(w.Requests, report.Request{
			User: c.User, Verb: c.Verb, Resource: c.Resource, Writes: c.Writes, Failed: c.Failed, DryRuns: c.DryRuns, PerPod: each(c.Writes),
		})
		w.Total += c.Writes
		w.Failed += c.Failed
		w.DryRuns += c.DryRuns
		if c.Resource == "pods" || strings.HasPrefix(c.Resource, "pods/") {
			w.OnPods += c.Writes
		}
		if c.Resource == kind.StatusResource() {
			w.OnStatus += c.Writes
		}
	}
	w.PerPod, w.OnPodsEach = each(w.Total), each(w.OnPods)
	return w
}
