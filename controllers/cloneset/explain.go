package cloneset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine/decision"
)

// round explains what a reconcile decided. It reads the world it was made in,
// which nobody changes any more.
type round struct {
	w     *world
	plan  *decision.Record
	moved map[string]bool
	skips map[string]int
}

func newRound(w *world, taken []string) *round {
	r := &round{w: w, moved: make(map[string]bool, len(taken)), skips: make(map[string]int, len(w.skipped))}
	for _, name := range taken {
		r.moved[name] = true
	}
	for i := range w.skipped {
		r.skips[w.skipped[i].Name] = i
	}
	for i := range w.records {
		if w.records[i].Point == decision.RolloutPlan().Name {
			r.plan = &w.records[i]
		}
	}
	return r
}

func (r *round) base() explain.Answer {
	w := r.w
	a := explain.Answer{Subject: w.subject(), Workload: w.subject(), Decided: w.now, Policies: w.policies, Bundles: w.bundles}
	for i := range w.records {
		a.Rules = append(a.Rules, w.records[i].Rules...)
	}
	slices.Sort(a.Rules)
	a.Rules = slices.Compact(a.Rules)
	if r.plan != nil {
		a.Outcome, a.Error = r.plan.Outcome, r.plan.Error
	}
	return a
}

// Workload implements explain.Round.
func (r *round) Workload() explain.Answer {
	a, w := r.base(), r.w
	c := w.counts()
	a.From, a.To = w.history.Current.Name, w.history.Update.Name
	a.Facts = w.planFacts(c)
	a.Pods = map[explain.Verdict]int{}
	for _, p := range w.pods {
		v := r.pod(p).Verdict
		a.Pods[v]++
	}
	switch top := w.topHold(); {
	case top != nil:
		a.Verdict = explain.Held
		hold(&a, *top)
		if len(w.holds) > 1 {
			a.Others = w.holds[1:]
		}
	case c.Updated < min(replicas(w.set)-w.strategy.Partition, c.Total) || c.UpdatedAvail < c.Updated:
		a.Verdict, a.Reason = explain.Updating, "RolloutInProgress"
		a.Message = fmt.Sprintf("%d of %d pods are updated, %d of them available; %d may be unavailable.", c.Updated, replicas(w.set)-w.strategy.Partition, c.UpdatedAvail, w.strategy.MaxUnavailable)
	default:
		a.Verdict, a.Reason = explain.UpToDate, "RolloutComplete"
		a.Message = fmt.Sprintf("All %d pods that are to be updated are.", replicas(w.set)-w.strategy.Partition)
	}
	return a
}

func hold(a *explain.Answer, h decision.Hold) {
	a.Rule, a.Reason, a.Message, a.Until = h.Rule, h.Reason, h.Message, h.Until
}

// Pod implements explain.Round.
func (r *round) Pod(name string) (explain.Answer, bool) {
	for _, p := range r.w.pods {
		if p.Name == name {
			return r.pod(p), true
		}
	}
	return explain.Answer{}, false
}

// Pods implements explain.Round.
func (r *round) Pods() []explain.Answer {
	out := make([]explain.Answer, len(r.w.pods))
	for i, p := range r.w.pods {
		out[i] = r.pod(p)
	}
	slices.SortStableFunc(out, func(a, b explain.Answer) int {
		return cmp.Compare(r.place(a.Subject.Name), r.place(b.Subject.Name))
	})
	return out
}

func (r *round) place(name string) int {
	if i, ok := r.skips[name]; ok {
		return i + 1
	}
	return 0
}

func (r *round) pod(p *facts.Pod) explain.Answer {
	w, a := r.w, r.base()
	a.Subject = decision.Subject{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	a.From, a.To = p.Labels[revisionLabel], w.target(p).Name
	a.Facts = podFacts(p, p.Available(w.minReady, w.now))
	i, skipped := r.skips[p.Name]
	switch {
	case r.moved[p.Name]:
		a.Verdict, a.Reason, a.Message = explain.Moved, "Selected", fmt.Sprintf("Its update to %s was started in the last round.", a.To)
	case p.State == kruise.LifecycleStatePreparingDelete, w.specified(p):
		a.Verdict, a.Reason, a.Message = explain.Deleting, "DeleteWanted", "It is to be deleted, as soon as the budget and its hooks allow."
	case p.State == kruise.LifecycleStatePreparingUpdate, p.State == kruise.LifecycleStateUpdated, p.State == kruise.LifecycleStatePreparingNormal:
		a.Verdict, a.Reason = explain.Hooked, string(p.State)
		a.Message = fmt.Sprintf("A lifecycle hook of the CloneSet keeps it in state %s.", p.State)
	case skipped:
		h := w.skipped[i].Hold
		a.Verdict = explain.Held
		if h.Ours() {
			a.Verdict = explain.Waiting
		}
		hold(&a, h)
		a.Facts = append(a.Facts, w.planFacts(w.counts())...)
	case !p.Facts.Updated:
		a.Verdict, a.Reason = explain.Waiting, "PartitionReached"
		a.Message = fmt.Sprintf("As many pods are updated as the partition of %d allows.", w.strategy.Partition)
		a.Facts = append(a.Facts, w.planFacts(w.counts())...)
	case !p.Available(w.minReady, w.now):
		a.Verdict, a.Reason, a.Message = explain.Updating, "NotAvailable", notAvailable(p)
	default:
		a.Verdict, a.Reason, a.Message = explain.UpToDate, "Updated", fmt.Sprintf("It has revision %s and is available.", a.To)
	}
	return a
}

func notAvailable(p *facts.Pod) string {
	switch {
	case !p.InPlaceDone:
		return "It has its revision; its in-place update has not been seen to complete."
	case !p.Ready:
		return "It has its revision, but it is not ready."
	}
	return "It has its revision and is ready, but not yet for minReadySeconds."
}

func (w *world) planFacts(c decision.Counts) []explain.Fact {
	n := func(name string, v int) explain.Fact { return explain.Fact{Name: name, Value: strconv.Itoa(v)} }
	return []explain.Fact{
		n("workload.replicas", replicas(w.set)), n("strategy.partition", w.strategy.Partition),
		n("strategy.maxUnavailable", w.strategy.MaxUnavailable), n("counts.updated", c.Updated),
		n("counts.available", c.Available), n("counts.unavailable", c.Unavailable),
	}
}

func podFacts(p *facts.Pod, available bool) []explain.Fact {
	out := []explain.Fact{{Name: "pod.ready", Value: strconv.FormatBool(p.Ready)}, {Name: "pod.available", Value: strconv.FormatBool(available)}}
	for name, v := range map[string]string{"pod.node": p.Facts.Node, "pod.zone": p.Facts.Zone, "pod.state": string(p.State)} {
		if v != "" {
			out = append(out, explain.Fact{Name: name, Value: v})
		}
	}
	for k, v := range p.Facts.Labels {
		out = append(out, explain.Fact{Name: "pod.labels." + k, Value: v})
	}
	slices.SortFunc(out, func(a, b explain.Fact) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
