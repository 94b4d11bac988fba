package cloneset

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// round explains what a reconcile decided. It reads the world it was made in,
// which nobody changes any more.
type round struct {
	w     *world
	e     *engine.Engine
	plan  *decision.Record
	moved map[string]bool
	skips map[string]int
	// evidence is worked out when somebody asks: hardly any round is asked about.
	evidence func() evidence
}

func newRound(w *world, e *engine.Engine) *round {
	r := &round{w: w, e: e, moved: make(map[string]bool, len(w.taken)), skips: make(map[string]int, len(w.skipped))}
	for _, name := range w.taken {
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
	r.evidence = sync.OnceValue(r.gather)
	return r
}

func (r *round) base() explain.Answer {
	w := r.w
	a := explain.Answer{
		Subject: w.subject(), Workload: w.subject(), Decided: w.now,
		Policies: w.policies, Bundles: w.bundles, Rules: r.evidence().rules,
	}
	if r.plan != nil {
		a.Outcome, a.Error = r.plan.Outcome, r.plan.Error
	}
	return a
}

// Workload implements explain.Round.
func (r *round) Workload() explain.Answer {
	a, w := r.base(), r.w
	a.From, a.To = w.history.Current.Name, w.history.Update.Name
	a.Groups = w.groups()
	a.Pods, a.Why = r.tallies()
	c, want := r.evidence().counts, replicas(w.set)-w.strategy.Partition
	onTheWay := a.Pods[explain.Moved] + a.Pods[explain.Updating]
	progress := fmt.Sprintf("%d of %d pods are updated, %d of them available; %d may be unavailable.", c.Updated, want, c.UpdatedAvail, w.strategy.MaxUnavailable)
	top := w.topHold()
	switch {
	case top != nil && (w.heldWhole() || onTheWay == 0):
		a.Verdict = explain.Held
		r.blame(&a, *top)
		a.Others = w.others(*top, nil)
	case top != nil:
		// Holding some while others go is how such a policy wants a rollout to go.
		a.Verdict, a.Reason, a.Message = explain.Updating, "RolloutInProgress", progress
		a.Others = w.others(decision.Hold{}, nil)
	case c.Updated < want || c.UpdatedAvail < c.Updated || c.Total != replicas(w.set):
		a.Verdict, a.Reason, a.Message = explain.Updating, "RolloutInProgress", progress
	default:
		a.Verdict, a.Reason = explain.UpToDate, "RolloutComplete"
		a.Message = fmt.Sprintf("All %d pods that are to be updated are.", want)
	}
	r.tell(&a, r.evidence().bounds...)
	a.Near = r.near(a.Verdict, nil)
	return a
}

// Pod implements explain.Round.
func (r *round) Pod(name string) (explain.Answer, bool) {
	for _, p := range r.w.pods {
		if p.Name == name {
			a := r.pod(p, r.base())
			more := podFacts(p, p.Available(r.w.minReady, r.w.now))
			if a.Verdict == explain.Held || a.Verdict == explain.Waiting {
				a.Others = r.w.others(decision.Hold{Rule: a.Rule, Reason: a.Reason}, p)
				more = append(more, r.evidence().bounds...)
			}
			r.tell(&a, more...)
			a.Near = r.near(a.Verdict, p)
			return a, true
		}
	}
	return explain.Answer{}, false
}

// Pods implements explain.Round.
func (r *round) Pods() []explain.Answer {
	out := make([]explain.Answer, len(r.w.pods))
	base := explain.Answer{Workload: r.w.subject(), Decided: r.w.now, Policies: r.w.policies}
	for i, p := range r.w.pods {
		out[i] = r.pod(p, base)
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

func (r *round) pod(p *facts.Pod, a explain.Answer) explain.Answer {
	w := r.w
	a.Subject = decision.Subject{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	a.From, a.To = p.Labels[revisionLabel], w.target().Name
	i, skipped := r.skips[p.Name]
	switch {
	case r.moved[p.Name]:
		a.Verdict, a.Reason, a.Message = explain.Moved, "Selected", fmt.Sprintf("Its update to %s was started in the last round.", a.To)
	case w.leaves(p):
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
		r.blame(&a, h)
	case !p.Facts.Updated:
		a.Verdict = explain.Waiting
		a.Reason, a.Message = r.passedOver()
	case !p.Available(w.minReady, w.now):
		a.Verdict, a.Reason, a.Message = explain.Updating, "NotAvailable", notAvailable(p)
	default:
		a.Verdict, a.Reason, a.Message = explain.UpToDate, "Updated", fmt.Sprintf("It has revision %s and is available.", a.To)
	}
	return a
}

// passedOver says why the round did not come to a pod that is not updated.
func (r *round) passedOver() (reason, message string) {
	w := r.w
	switch {
	case w.onDelete():
		return "OnDelete", "The strategy is OnDelete, so it is updated when somebody deletes it."
	case r.evidence().counts.Updated >= replicas(w.set)-w.strategy.Partition:
		return "PartitionReached", fmt.Sprintf("As many pods are updated as the partition of %d allows.", w.strategy.Partition)
	case r.plan == nil:
		return "ScaleFirst", "Pods were created or deleted in the last round; updates go on after that."
	}
	return "LimitReached", "As many pods are on their way as may be moved now; this one waits for them."
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
