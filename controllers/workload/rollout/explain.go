// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// account explains what a round decided.
type account struct {
	f       *Facts
	res     Result
	rules   []string // that took part in the decisions
	e       *engine.Engine
	skipped []selection.Skip
	moved   map[types.NamespacedName]bool
	skips   map[types.NamespacedName]int // positions in skipped
	// evidence is worked out for each question anew: hardly any round is asked about, and it would be kept with it.
	evidence func() evidence
}

func newRound(e *engine.Engine, f *Facts, res Result, journal []decision.Record) *account {
	r := &account{f: f, res: res, e: e, skipped: res.skipped(), moved: make(map[types.NamespacedName]bool, len(res.Moved))}
	for _, pod := range res.Moved {
		r.moved[pod] = true
	}
	r.skips = make(map[types.NamespacedName]int, len(r.skipped))
	for i := range r.skipped {
		r.skips[r.skipped[i].Pod] = i
	}
	for i := range journal {
		r.rules = append(r.rules, journal[i].Rules...)
	}
	slices.Sort(r.rules)
	r.rules = slices.Clip(slices.Compact(r.rules))
	return r
}

// withAnswers is the account for one question.
func (r *account) withAnswers() *account {
	one := *r
	one.evidence = sync.OnceValue(one.gather)
	return &one
}

// What an account takes besides what is measured: itself, and for each pod, and each that is skipped, its places in lists and maps.
const (
	accountBytes = 4 << 10
	podBytes     = int(unsafe.Sizeof(facts.Pod{})) + 128
	skipBytes    = 256
)

// CountBytes implements explain.Round.
func (r *account) CountBytes() int {
	n := accountBytes + podBytes*len(r.f.Pods) + skipBytes*(len(r.res.Moved)+len(r.skipped))
	for i := range r.skipped {
		n += r.skipped[i].Hold.CountBytes()
	}
	for _, holds := range [][]decision.Hold{r.res.Holds, r.res.ScaleHolds} {
		for i := range holds {
			n += holds[i].CountBytes()
		}
	}
	for _, rule := range r.rules {
		n += 16 + len(rule)
	}
	for _, s := range r.res.Stuck {
		n += 32 + len(s.Pod) + len(s.Message)
	}
	if r.res.Plan != nil {
		n += record.Size(*r.res.Plan)
	}
	if r.res.Err != nil {
		n += len(r.res.Err.Error())
	}
	return n
}

func (r *account) base() explain.Answer {
	f := r.f
	a := explain.Answer{
		Subject: f.Subject, Workload: f.Subject, Decided: f.Now,
		Policies: f.Policies, Bundles: f.Bundles, Rules: r.evidence().rules,
	}
	if r.res.Plan != nil {
		a.Outcome, a.Error = r.res.Plan.Outcome, r.res.Plan.Error
	}
	return a
}

// Workload implements explain.Round.
func (r *account) Workload() explain.Answer {
	r = r.withAnswers()
	a, f := r.base(), r.f
	a.From, a.To = f.Templates.Current(), f.Templates.Update()
	a.Groups = f.Groups()
	a.Pods, a.Why = r.tallies()
	a.Nodes = r.nodes()
	c, want := r.evidence().counts, f.Replicas-f.Strategy.Partition
	onTheWay := a.Pods[explain.Moved] + a.Pods[explain.Updating]
	progress := fmt.Sprintf("%d of %d pods are updated, %d of them available; %d may be unavailable.", c.Updated, want, c.UpdatedAvail, f.Strategy.MaxUnavailable)
	top := r.res.TopHold()
	switch {
	case top != nil && (slices.ContainsFunc(r.res.holds(), decision.Hold.Whole) || onTheWay == 0):
		a.Verdict = explain.Held
		r.blame(&a, *top)
		a.Others = r.others(*top, nil)
	case top != nil:
		// Holding some while others go is how such a policy wants a rollout to go.
		a.Verdict, a.Reason, a.Message = explain.Updating, "RolloutInProgress", progress
		a.Others = r.others(decision.Hold{}, nil)
	case c.Updated < want || c.UpdatedAvail < c.Updated || c.Total != f.Replicas:
		a.Verdict, a.Reason, a.Message = explain.Updating, "RolloutInProgress", progress
	default:
		a.Verdict, a.Reason = explain.UpToDate, "RolloutComplete"
		a.Message = fmt.Sprintf("All %d pods that are to be updated are.", want)
	}
	for _, h := range r.res.ScaleHolds {
		if h.Rule != a.Rule || h.Reason != a.Reason { // one of the pods that an update creates may be the top one
			a.Others = append(a.Others, h)
		}
	}
	r.tell(&a, r.evidence().bounds...)
	if teller, ok := f.kind.(Teller); ok {
		r.tell(&a, teller.Tell(f)...)
	}
	a.Near = r.near(a.Verdict, nil)
	return a
}

// nodes are those whose pods are not up to date, the ones that move first; none of a kind that
// puts no pod on each node.
func (r *account) nodes() (out []explain.Node) {
	of := r.f.kind.Type().NodeOf
	if of == nil {
		return nil
	}
	for _, p := range r.f.Pods {
		if a := r.pod(p, explain.Answer{}); a.Verdict != explain.UpToDate {
			out = append(out, explain.Node{Name: of(p.Pod), Pod: r.f.nameOf(p.Key()), Verdict: a.Verdict, Reason: a.Reason, Rule: a.Rule})
		}
	}
	order := []explain.Verdict{explain.Moved, explain.Updating, explain.Deleting, explain.Hooked, explain.Held, explain.Waiting}
	slices.SortStableFunc(out, func(a, b explain.Node) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict)), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), explain.MostNodes)]
}

// Pod implements explain.Round.
func (r *account) Pod(namespace, name string) (explain.Answer, bool) {
	for _, p := range r.f.Pods {
		if p.Namespace == namespace && p.Name == name {
			r = r.withAnswers()
			a := r.pod(p, r.base())
			more := podFacts(p, r.f.Available(p))
			if a.Verdict == explain.Held || a.Verdict == explain.Waiting {
				a.Others = r.others(decision.Hold{Rule: a.Rule, Reason: a.Reason}, p)
				more = append(more, r.evidence().bounds...)
			}
			r.tell(&a, more...)
			a.Near = r.near(a.Verdict, p)
			return a, true
		}
	}
	return explain.Answer{}, false
}

// Lacks implements explain.Lacker.
func (r *account) Lacks(namespace, name string) (explain.Answer, bool) {
	kind, ok := r.f.kind.(Lacker)
	if !ok {
		return explain.Answer{}, false
	}
	a, ok := kind.Lacking(r.f, namespace, name)
	a.Workload, a.Decided, a.Policies, a.Bundles = r.f.Subject, r.f.Now, r.f.Policies, r.f.Bundles
	return a, ok
}

// Pods implements explain.Round.
func (r *account) Pods() []explain.Answer { return r.withAnswers().pods() }

func (r *account) pods() []explain.Answer {
	out := make([]explain.Answer, len(r.f.Pods))
	base := explain.Answer{Workload: r.f.Subject, Decided: r.f.Now, Policies: r.f.Policies}
	for i, p := range r.f.Pods {
		out[i] = r.pod(p, base)
	}
	slices.SortStableFunc(out, func(a, b explain.Answer) int {
		return cmp.Compare(r.place(a.Subject), r.place(b.Subject))
	})
	return out
}

// keyOf is the name of the pod that an answer is about, with its namespace.
func keyOf(pod decision.Subject) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func (r *account) place(pod decision.Subject) int {
	if i, ok := r.skips[keyOf(pod)]; ok {
		return i + 1
	}
	return 0
}

func (r *account) pod(p *facts.Pod, a explain.Answer) explain.Answer {
	f := r.f
	a.Subject = decision.Subject{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	a.From, a.To = f.Templates.At(p.Pod), f.Target()
	i, skipped := r.skips[p.Key()]
	growing := f.growth(p.Pod).Growing
	switch {
	case growing != "" && !skipped:
		a.Verdict, a.Reason, a.Message = explain.Updating, "VolumeClaimGrowing", growing+"."
	case r.moved[p.Key()]:
		a.Verdict, a.Reason, a.Message = explain.Moved, "Selected", fmt.Sprintf("Its update to %s was started in the last round.", a.To)
	case f.Leaves(p):
		a.Verdict, a.Reason, a.Message = explain.Deleting, "DeleteWanted", "It is to be deleted, as soon as the budget and its hooks allow."
	case p.State == kruise.LifecycleStatePreparingUpdate, p.State == kruise.LifecycleStateUpdated, lifecycle.WaitsForPreNormal(p.Pod, f.Lifecycle):
		a.Verdict, a.Reason = explain.Hooked, string(p.State)
		a.Message = fmt.Sprintf("A lifecycle hook of the %s keeps it in state %s.", f.Subject.Kind, p.State)
	case skipped:
		h := r.skipped[i].Hold
		a.Verdict = explain.Held
		if h.Ours() {
			a.Verdict = explain.Waiting
		}
		r.blame(&a, h)
	case !p.Facts.Updated:
		a.Verdict = explain.Waiting
		a.Reason, a.Message = r.passedOver()
	case !f.Available(p):
		a.Verdict, a.Reason, a.Message = explain.Updating, "NotAvailable", notAvailable(p)
	default:
		a.Verdict, a.Reason, a.Message = explain.UpToDate, "Updated", fmt.Sprintf("It has revision %s and is available.", a.To)
	}
	return a
}

// passedOver says why the round did not come to a pod that is not updated.
func (r *account) passedOver() (reason, message string) {
	f := r.f
	switch {
	case f.Strategy.Type == OnDelete:
		return "OnDelete", "The strategy is OnDelete, so it is updated when it is deleted."
	case r.evidence().counts.Updated >= f.Replicas-f.Strategy.Partition:
		return "PartitionReached", fmt.Sprintf("As many pods are updated as the partition of %d allows.", f.Strategy.Partition)
	case r.res.Plan == nil:
		return "ScaleFirst", "Pods were created or deleted in the last round; updates go on after that."
	}
	return "LimitReached", "As many pods are on their way as may be moved now; this one waits for them."
}

func notAvailable(p *facts.Pod) string {
	switch {
	case !p.InPlaceDone:
		return fmt.Sprintf("It has its revision; its in-place update has not been seen to complete: %s.", inplace.Incomplete(p.Pod))
	case !p.Ready:
		return "It has its revision, but it is not ready."
	}
	return "It has its revision and is ready, but not yet for minReadySeconds."
}

// Lacker is a Kind that knows which pods should belong to a workload and do not.
type Lacker interface {
	// Lacking says why, false if the pod belongs to it or need not. It knows neither the workload nor when that was decided.
	Lacking(f *Facts, namespace, pod string) (explain.Answer, bool)
}

// Teller is a Kind that has more to tell of a workload.
type Teller interface {
	// Tell says what else is to be known.
	Tell(f *Facts) []explain.Fact
}
