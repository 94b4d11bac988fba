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

// explanation explains what a round decided.
type explanation struct {
	f       *Facts
	res     Result
	rules   []string // that took part in the decisions
	e       *engine.Engine
	skipped []selection.Skip
	moved   map[types.NamespacedName]bool
	skips   map[types.NamespacedName]int // positions in skipped
	// evidence is computed for each question: users ask about very few rounds, and the result would take memory in all of them.
	evidence func() ruleDetails
}

func newRound(e *engine.Engine, f *Facts, res Result, journal []decision.Record) *explanation {
	r := &explanation{f: f, res: res, e: e, skipped: res.skippedCandidates(), moved: make(map[types.NamespacedName]bool, len(res.Moved))}
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

// withAnswers returns the explanation for one question.
func (r *explanation) withAnswers() *explanation {
	one := *r
	one.evidence = sync.OnceValue(one.gatherEvidence)
	return &one
}

// The memory that an explanation takes beside what is measured: for itself, and for each pod and each skipped pod in lists
// and maps.
const (
	accountBytes = 4 << 10
	podBytes     = int(unsafe.Sizeof(facts.Pod{})) + 128
	skipBytes    = 256
)

// CountBytes implements explain.Round.
func (r *explanation) CountBytes() int {
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
		n += record.MemorySize(*r.res.Plan)
	}
	if r.res.Err != nil {
		n += len(r.res.Err.Error())
	}
	return n
}

func (r *explanation) baseAnswer() explain.Answer {
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

// ExplainWorkload implements explain.Round.
func (r *explanation) ExplainWorkload() explain.Answer {
	r = r.withAnswers()
	a, f := r.baseAnswer(), r.f
	a.From, a.To = f.Templates.CurrentRevision(), f.Templates.UpdateRevision()
	a.Groups = f.CountGroups()
	a.Pods, a.Why = r.tallyPods()
	a.Nodes = r.outdatedNodes()
	c, want := r.evidence().counts, f.Replicas-f.Strategy.Partition
	onTheWay := a.Pods[explain.Moved] + a.Pods[explain.Updating]
	progress := fmt.Sprintf("%d of %d pods are updated, %d of them available; %d may be unavailable.", c.Updated, want, c.UpdatedAvail, f.Strategy.MaxUnavailable)
	top := r.res.TopHold()
	switch {
	case top != nil && (slices.ContainsFunc(r.res.planAndBudgetHolds(), decision.Hold.IsWholeWorkload) || onTheWay == 0):
		a.Verdict = explain.Held
		r.fillHold(&a, *top)
		a.Others = r.otherHolds(*top, nil)
	case top != nil:
		// A policy that holds some pods while others are moved controls the rollout, and does not stop it.
		a.Verdict, a.Reason, a.Message = explain.Updating, "RolloutInProgress", progress
		a.Others = r.otherHolds(decision.Hold{}, nil)
	case !f.isComplete(c):
		a.Verdict, a.Reason, a.Message = explain.Updating, "RolloutInProgress", progress
	default:
		a.Verdict, a.Reason = explain.UpToDate, "RolloutComplete"
		a.Message = fmt.Sprintf("All %d pods that are to be updated are.", want)
	}
	for _, h := range r.res.ScaleHolds {
		if h.Rule != a.Rule || h.Reason != a.Reason { // a hold of the pods that an update creates may be the top hold already
			a.Others = append(a.Others, h)
		}
	}
	r.addFacts(&a, r.evidence().bounds...)
	if teller, ok := f.kind.(KindWithExtraFacts); ok {
		r.addFacts(&a, teller.ExtraFacts(f)...)
	}
	a.Near, a.Basis = r.nearestChange(a.Verdict, nil), r.answerBasis(nil)
	return a
}

// outdatedNodes returns the nodes whose pods are not up to date, those that move first at the beginning. It returns none for a kind that
// does not put a pod on each node.
func (r *explanation) outdatedNodes() (out []explain.Node) {
	of := r.f.kind.WorkloadType().NodeOf
	if of == nil {
		return nil
	}
	for _, p := range r.f.Pods {
		if a := r.podAnswer(p, explain.Answer{}); a.Verdict != explain.UpToDate {
			out = append(out, explain.Node{Name: of(p.Pod), Pod: r.f.nameOf(p.Key()), Verdict: a.Verdict, Reason: a.Reason, Rule: a.Rule})
		}
	}
	order := []explain.Verdict{explain.Moved, explain.Updating, explain.Deleting, explain.Hooked, explain.Held, explain.Waiting}
	slices.SortStableFunc(out, func(a, b explain.Node) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict)), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), explain.MostNodes)]
}

// ExplainPod implements explain.Round.
func (r *explanation) ExplainPod(namespace, name string) (explain.Answer, bool) {
	for _, p := range r.f.Pods {
		if p.Namespace == namespace && p.Name == name {
			r = r.withAnswers()
			a := r.podAnswer(p, r.baseAnswer())
			more := podFacts(p, r.f.IsAvailable(p))
			if a.Verdict == explain.Held || a.Verdict == explain.Waiting {
				a.Others = r.otherHolds(decision.Hold{Rule: a.Rule, Reason: a.Reason}, p)
				more = append(more, r.evidence().bounds...)
			}
			r.addFacts(&a, more...)
			a.Near, a.Basis = r.nearestChange(a.Verdict, p), r.answerBasis(p)
			return a, true
		}
	}
	return explain.Answer{}, false
}

// ExplainMissing implements explain.RoundWithMissingPods.
func (r *explanation) ExplainMissing(namespace, name string) (explain.Answer, bool) {
	kind, ok := r.f.kind.(KindWithMissingPods)
	if !ok {
		return explain.Answer{}, false
	}
	a, ok := kind.ExplainMissing(r.f, namespace, name)
	a.Workload, a.Decided, a.Policies, a.Bundles = r.f.Subject, r.f.Now, r.f.Policies, r.f.Bundles
	return a, ok
}

// ExplainPods implements explain.Round.
func (r *explanation) ExplainPods() []explain.Answer { return r.withAnswers().podAnswers() }

func (r *explanation) podAnswers() []explain.Answer {
	out := make([]explain.Answer, len(r.f.Pods))
	base := explain.Answer{Workload: r.f.Subject, Decided: r.f.Now, Policies: r.f.Policies}
	for i, p := range r.f.Pods {
		out[i] = r.podAnswer(p, base)
	}
	slices.SortStableFunc(out, func(a, b explain.Answer) int {
		return cmp.Compare(r.skipPosition(a.Subject), r.skipPosition(b.Subject))
	})
	return out
}

// keyOf returns the namespaced name of the pod that an answer is about.
func keyOf(pod decision.Subject) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func (r *explanation) skipPosition(pod decision.Subject) int {
	if i, ok := r.skips[keyOf(pod)]; ok {
		return i + 1
	}
	return 0
}

func (r *explanation) podAnswer(p *facts.Pod, a explain.Answer) explain.Answer {
	f := r.f
	a.Subject = facts.PodSubject(p)
	a.From, a.To = f.Templates.PodRevision(p.Pod), f.TargetRevision()
	i, skipped := r.skips[p.Key()]
	growing := f.claimGrowth(p.Pod).Growing
	switch {
	case growing != "" && !skipped:
		a.Verdict, a.Reason, a.Message = explain.Updating, "VolumeClaimGrowing", growing+"."
	case r.moved[p.Key()]:
		a.Verdict, a.Reason, a.Message = explain.Moved, "Selected", fmt.Sprintf("Its update to %s was started in the last round.", a.To)
	case f.IsLeaving(p):
		a.Verdict, a.Reason, a.Message = explain.Deleting, "DeleteWanted", "It is to be deleted, as soon as the budget and its hooks allow."
	case p.State == kruise.LifecycleStatePreparingUpdate, p.State == kruise.LifecycleStateUpdated, lifecycle.WaitsForPreNormal(p.Pod, f.Lifecycle):
		a.Verdict, a.Reason = explain.Hooked, string(p.State)
		a.Message = fmt.Sprintf("A lifecycle hook of the %s keeps it in state %s.", f.Subject.Kind, p.State)
	case skipped:
		h := r.skipped[i].Hold
		a.Verdict = explain.Held
		if h.IsFromWalk() {
			a.Verdict = explain.Waiting
		}
		r.fillHold(&a, h)
	case !p.Facts.Updated:
		a.Verdict = explain.Waiting
		a.Reason, a.Message = r.passedOver()
	case !f.IsAvailable(p):
		a.Verdict, a.Reason, a.Message = explain.Updating, "NotAvailable", notAvailable(p)
	default:
		a.Verdict, a.Reason, a.Message = explain.UpToDate, "Updated", fmt.Sprintf("It has revision %s and is available.", a.To)
	}
	return a
}

// passedOver returns why the round did not decide about a pod that is not updated.
func (r *explanation) passedOver() (reason, message string) {
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
		return fmt.Sprintf("It has its revision; its in-place update has not been seen to complete: %s.", inplace.IncompleteReason(p.Pod))
	case !p.Ready:
		return "It has its revision, but it is not ready."
	}
	return "It has its revision and is ready, but not yet for minReadySeconds."
}

// KindWithMissingPods is a Kind that finds pods that should belong to a workload and do not.
type KindWithMissingPods interface {
	// ExplainMissing explains why a pod does not belong to the workload. It returns false if the pod belongs to it or need not. The answer
	// has neither the workload nor the time of the decision.
	ExplainMissing(f *Facts, namespace, pod string) (explain.Answer, bool)
}

// KindWithExtraFacts is a Kind with further facts about a workload for explanations.
type KindWithExtraFacts interface {
	// ExtraFacts returns these facts.
	ExtraFacts(f *Facts) []explain.Fact
}
