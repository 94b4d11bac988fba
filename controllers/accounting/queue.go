// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	parallel "github.com/regatta-sh/regatta/controllers/workload/batch"
	"github.com/regatta-sh/regatta/controllers/workload/coalesce"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

const (
	// tries is how often a write of a budget is tried before the requests are refused.
	tries = 4
	// patience is the time for one round of reads and writes. A caller has a deadline of its own, which is
	// shorter.
	patience = 5 * time.Second
	// most is how many requests are answered by one write.
	most = 64
)

type ticket struct {
	ctx      context.Context
	question Request
	done     chan struct{}

	answer Result
	err    error
}

// answerBatch decides the requests of a batch by one state of the budget, one after the other, as if
// each pod was recorded before the next request came in.
func (l *Accountant) answerBatch(ctx context.Context, key types.NamespacedName, batch []*ticket) {
	budget, live, err := l.newestBudget(ctx, key)
	for try := 0; ; {
		batch = slices.DeleteFunc(batch, func(t *ticket) bool { return t.ctx.Err() != nil })
		if err != nil || len(batch) == 0 {
			finishTickets(batch, err)
			return
		}
		if budget != nil {
			batch = l.rereadAll(ctx, batch, budget)
		}
		d := draftOf(budget)
		sure := true
		for _, t := range batch {
			sure = l.decideTicket(t, d) && sure
		}
		switch {
		case d.changed:
			// The decision holds for all of them if no other client wrote in between.
			err = l.client.Status().Update(ctx, d.budget)
			if err == nil {
				l.trackWritten(key, d)
				for _, t := range batch {
					t.answer.Version = d.budget.ResourceVersion
				}
				finishTickets(batch, nil)
				return
			}
			if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				err = fmt.Errorf("recording in PodUnavailableBudget %s: %w", key, err)
				continue
			}
			if try++; try == tries {
				giveUp(key, batch)
				return
			}
			coalesce.SleepJitter(ctx, try)
		case live || sure:
			finishTickets(batch, nil)
			return
		}
		budget, err = l.readLiveBudget(ctx, key)
		if live = true; err == nil && !d.changed && isSameVersion(d.budget, budget) {
			finishTickets(batch, nil)
			return
		}
	}
}

// atOnce is how many pods are read at a time.
const atOnce = 16

// rereadAll calls rereadPod for each ticket of a batch, and returns the tickets that are still to be answered.
func (l *Accountant) rereadAll(ctx context.Context, batch []*ticket, budget *policy.PodUnavailableBudget) []*ticket {
	var acts []func() error
	for _, t := range batch {
		if t.question.Asked.Request.Operation == protection.Evict {
			acts = append(acts, func() error { t.err = l.rereadPod(ctx, t, budget); return nil })
		}
	}
	_ = parallel.RunParallel(atOnce, acts) // each ticket keeps its own error
	return slices.DeleteFunc(batch, func(t *ticket) bool {
		if t.err != nil {
			close(t.done)
		}
		return t.err != nil
	})
}

// rereadPod reads the pod of a request again if the pod did not count when the request came in. Such a pod uses up no
// allowed disruption, and the API server does not ask again about an eviction. If the pod became available meanwhile, and
// the status of the budget counts it, another pod could be disrupted too.
func (l *Accountant) rereadPod(ctx context.Context, t *ticket, budget *policy.PodUnavailableBudget) error {
	in := l.buildInput(t.question, budget, false)
	if in.Request.DryRun || in.Object.Terminating || !isCovered(in) || isProtected(in) {
		return nil
	}
	pod, old := &corev1.Pod{}, t.question.Pod
	err := l.live.Get(ctx, types.NamespacedName{Namespace: old.Namespace, Name: old.Name}, pod)
	if apierrors.IsNotFound(err) || err == nil && pod.UID != old.UID { // it is gone
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading pod %s/%s once more: %w", old.Namespace, old.Name, err)
	}
	asked := *t.question.Asked
	asked.SetObject(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	t.question.Asked, t.question.Pod = &asked, pod
	return nil
}

func isSameVersion(a, b *policy.PodUnavailableBudget) bool {
	return a != nil && b != nil && a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

func finishTickets(batch []*ticket, err error) {
	for _, t := range batch {
		if t.err = err; err != nil {
			t.answer = Result{} // the decision was not recorded
		}
		close(t.done)
	}
}

// giveUp refuses the requests whose pods could not be recorded.
func giveUp(key types.NamespacedName, batch []*ticket) {
	for _, t := range batch {
		if !t.answer.Output.Allow || t.answer.Output.Record != "" {
			t.answer.Output = protection.BudgetOutput{Reasons: []decision.Hold{{
				Rule: "ledger", Reason: "BudgetContended",
				Message: fmt.Sprintf("podunavailablebudget.policy.kruise.io %q is forbidden: time out, the budget changed %d times while the pod was to be recorded in it, so the pod stays. Try again.", key.Name, tries),
			}}}
		}
		close(t.done)
	}
}

// failWaiting gives an error to those tickets that are not finished.
func failWaiting(batch []*ticket, err error) {
	for _, t := range batch {
		select {
		case <-t.done:
		default:
			t.answer = Result{}
			finishTickets([]*ticket{t}, err)
		}
	}
}
