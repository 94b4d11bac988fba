package cloneset

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
)

// dimensions that pods are grouped by.
const (
	zone   = "zone"
	region = "region"
)

func (w *world) planInput(d budget.Diff) decision.PlanInput {
	return decision.PlanInput{
		Now: w.now.UnixNano(), Workload: w.workload(), Strategy: w.strategy, Revisions: w.revisions(), Counts: w.counts(),
		Update: d.Update, MaxUnavailable: d.MaxUnavailable,
		Groups: w.groups(),
	}
}

// groups count the pods by where they run.
func (w *world) groups() map[string]map[string]decision.Group {
	out := map[string]map[string]decision.Group{zone: {}, region: {}}
	for _, p := range w.pods {
		for dimension, value := range groupsOf(p) {
			g := out[dimension][value]
			g.Total++
			add(&g.Updated, p.Facts.Updated)
			add(&g.Unavailable, !p.Available(w.minReady, w.now))
			out[dimension][value] = g
		}
	}
	return out
}

func groupsOf(p *facts.Pod) map[string]string {
	return map[string]string{zone: p.Facts.Zone, region: p.Facts.Region}
}

func (w *world) revisions() decision.Revisions {
	return decision.Revisions{Current: w.history.Current.Name, Update: w.history.Update.Name}
}

func (w *world) counts() decision.Counts {
	c := decision.Counts{Total: len(w.pods)}
	for _, p := range w.gone {
		if p.DeletionTimestamp != nil {
			c.Terminating++
		}
	}
	for _, p := range w.pods {
		available := p.Available(w.minReady, w.now)
		add(&c.Ready, p.Ready)
		add(&c.Available, available)
		add(&c.Unavailable, !available)
		add(&c.Updated, p.Facts.Updated)
		add(&c.UpdatedReady, p.Facts.Updated && p.Ready)
		add(&c.UpdatedAvail, p.Facts.Updated && available)
		preparing := p.State == kruise.LifecycleStatePreparingDelete
		add(&c.PreparingDelete, preparing)
		add(&c.SpecifiedDelete, !preparing && w.specified(p))
	}
	return c
}

func add(n *int, yes bool) {
	if yes {
		*n++
	}
}

// unavailable counts what the walk starts from. A pod that waits to be deleted has
// been taken already, though it is still there: no other available one may follow
// it. One that is unavailable anyway may, or each could wait for the other.
func (w *world) unavailable() selection.Unavailable {
	u := selection.Unavailable{}
	for _, p := range w.pods {
		atTarget := p.Facts.Updated != w.backwards
		switch {
		case !p.Available(w.minReady, w.now):
			u.Total++
			add(&u.AtTarget, atTarget || w.recreating(p))
		case w.recreating(p):
			u.Total++
		}
	}
	return u
}

// recreating says whether a pod not at its target is about to be deleted.
func (w *world) recreating(p *facts.Pod) bool {
	return p.Facts.Updated == w.backwards && p.State != kruise.LifecycleStatePreparingDelete && w.specified(p)
}

func (w *world) countRecreating() int {
	return len(slices.DeleteFunc(slices.Clone(w.pods), func(p *facts.Pod) bool { return !w.recreating(p) }))
}

// policyAnnotations leaves out what no policy decides by and what is long.
func policyAnnotations(all map[string]string) map[string]string {
	out := make(map[string]string, len(all))
	for k, v := range all {
		if k != corev1.LastAppliedConfigAnnotation && !strings.HasPrefix(k, "deployment.kubernetes.io/") {
			out[k] = v
		}
	}
	return out
}

// undecidedAgain is when a decision that was not made is asked for again.
const undecidedAgain = 5 * time.Second

// decided keeps a decision for the report. One that was not made, because a
// policy failed or took too long, is asked for again: nothing else may happen
// that would.
func (w *world) decided(rec decision.Record) {
	w.records = append(w.records, rec)
	if rec.Outcome != decision.Decided {
		w.again.in(undecidedAgain)
	}
}
