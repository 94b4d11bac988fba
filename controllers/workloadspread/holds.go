// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/disruption"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// heldAgain is the time after which held pods are evaluated again: a change of policies is no event of a spread.
const heldAgain = 10 * time.Second

// notHeld returns the pods without a node that rollout/plan and rollout/rank allow to be deleted. The input is about the workload of
// the pods, so that policies which hold its rollout hold these pods too. An event is recorded for each new reason.
func (t *reconcileRound) notHeld(ctx context.Context) ([]*corev1.Pod, error) {
	known := t.r.memory.GetOrCreate(t.w)
	if len(t.stuck) == 0 || t.target == nil {
		known.evictionHeld = ""
		return nil, nil
	}
	if t.r.Engine == nil {
		t.reportHeld(known, &decision.Hold{Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision, Message: "No policies are there to decide."})
		return nil, nil
	}
	labels, annotations, err := t.r.targets.WorkloadMetadata(ctx, t.w)
	if err != nil {
		return nil, err
	}
	topology, err := disruption.ReadNodes(ctx, t.r.Client, t.stuck)
	if err != nil {
		return nil, err
	}
	ref := t.w.Spec.TargetReference
	workload := rollout.Workload{
		Kind: ref.Kind, Namespace: t.w.Namespace, Name: ref.Name, UID: string(t.target.UID), Replicas: t.target.Replicas,
		Labels: labels, Annotations: facts.WorkloadAnnotations(annotations),
	}
	if err := t.r.NamespaceReader().CompleteWorkload(ctx, &workload); err != nil {
		return nil, err
	}
	a := disruption.EvaluatePods(ctx, t.r.Engine, disruption.Request{
		Subject:  facts.ObjectSubject(kruise.GroupVersion.Group, "WorkloadSpread", t.w),
		Workload: workload, Now: t.now, Pods: t.stuck, Topology: topology,
	})
	t.requeueWithin(a.Again)
	t.reportHeld(known, a.TopHold())
	return a.Allowed, nil
}

func (t *reconcileRound) reportHeld(known *memory, h *decision.Hold) {
	if h == nil {
		known.evictionHeld = ""
		return
	}
	t.requeueWithin(heldAgain)
	if known.evictionHeld == h.Reason {
		return
	}
	known.evictionHeld = h.Reason
	t.r.Events.Event(t.w, corev1.EventTypeWarning, kruise.WorkloadSpreadDeletePodHeldReason,
		fmt.Sprintf("Pods that found no node in %s are not deleted: %s: %s (rule %s)", t.criticalDuration(), h.Reason, h.Message, h.Rule))
}
