// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/disruption"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// holds are what rollout/plan and rollout/rank answer about the update of a UnitedDeployment. The controllers of CloneSets and
// of Advanced StatefulSets evaluate these points themselves. The controllers of Kubernetes do not, so this controller evaluates them before a
// native child gets another template, and before a pod is deleted that an update does not reach. It evaluates them once per round.
type holds struct {
	asked  bool
	answer disruption.Result
	// told is the first hold that stopped a change in this round.
	told *decision.Hold
}

// isNative reports whether the children are of a kind of Kubernetes itself.
func (k kind) isNative() bool { return k.Group == appsv1.SchemeGroupVersion.Group }

// askHolds evaluates the holds of the pods that are not of the updated revision, and of the pods of children that the update replaces by
// children of another kind.
func (t *reconcileRound) askHolds(ctx context.Context) (disruption.Result, error) {
	if t.holds.asked {
		return t.holds.answer, nil
	}
	var old []*corev1.Pod
	for _, p := range t.parts {
		for _, pod := range p.pods {
			if !t.isUpdated(pod) {
				old = append(old, pod)
			}
		}
	}
	for _, p := range t.replaced {
		old = append(old, p.pods...)
	}
	topology, err := disruption.ReadNodes(ctx, t.r.Client, old)
	if err != nil {
		return disruption.Result{}, err
	}
	answer, err := t.evaluateHolds(ctx, old, topology)
	if err != nil {
		return disruption.Result{}, err
	}
	t.holds.asked, t.holds.answer = true, answer
	return answer, nil
}

func (t *reconcileRound) evaluateHolds(ctx context.Context, old []*corev1.Pod, topology *facts.Topology) (disruption.Result, error) {
	workload := rollout.Workload{
		Kind: OwnerKind().Kind, Namespace: t.d.Namespace, Name: t.d.Name, UID: string(t.d.UID), Replicas: int(ptr.Deref(t.d.Spec.Replicas, 0)),
		Labels: t.d.Labels, Annotations: facts.WorkloadAnnotations(t.d.Annotations),
	}
	if err := t.r.NamespaceReader().CompleteWorkload(ctx, &workload); err != nil {
		return disruption.Result{}, err
	}
	partition := 0
	for _, p := range t.parts {
		partition += int(p.partition)
	}
	a := disruption.EvaluatePods(ctx, t.r.Engine, disruption.Request{
		Subject: decisionSubject(t.d), Now: t.now, Pods: old, Topology: topology,
		Revisions: rollout.Revisions{Current: t.history.Current.Name, Update: t.history.Update.Name},
		Workload:  workload,
		Strategy: rollout.Strategy{
			Type: "RollingUpdate", Policy: string(kruise.RecreatePodUpdatePolicyType), Partition: partition, MaxUnavailable: len(old), ScaleMaxUnavailable: len(old),
		},
	})
	t.requeueWithin(a.Again)
	return a, nil
}

// heldTemplate returns the hold because of which the template of a child may not be written, or nil. A new template of a native child replaces
// all its pods, so a hold of one of its pods, or of the place of its subset, holds the child.
func (t *reconcileRound) heldTemplate(ctx context.Context, p *subsetState) (*decision.Hold, error) {
	a, err := t.askHolds(ctx)
	if err != nil {
		return nil, err
	}
	held := a.Whole
	for _, pod := range p.pods {
		if h, ok := a.Held[pod.UID]; ok && held == nil && t.kind.isNative() {
			held = &h
		}
	}
	if held == nil {
		if held, err = t.heldNew(ctx, p, t.d, t.history.Update.Name); err != nil {
			return nil, err
		}
	}
	t.holds.recordHold(held)
	return held, nil
}

// heldNew evaluates the holds of a pod that a subset would get from a template. A rule that holds this pod, or its zone, keeps the pods
// of the subset at the revision that they have. If the subset may be in several zones, each of them is evaluated.
func (t *reconcileRound) heldNew(ctx context.Context, p *subsetState, d *kruise.UnitedDeployment, revision string) (*decision.Hold, error) {
	pods, err := podTemplate(d, t.kind, p.Subset, revision)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: pods.ObjectMeta, Spec: pods.Spec}
	pod.Spec.NodeName = "" // a template may name a node, which the place below is not of
	pod.Namespace, pod.Name, pod.UID = t.d.Namespace, fmt.Sprintf("%s-%s-", t.d.Name, p.Name), "new"
	for _, place := range placesOf(p.Subset) {
		topology := facts.NewTopology()
		topology.AssumePlace("", place) // the pod has no node yet
		a, err := t.evaluateHolds(ctx, []*corev1.Pod{pod}, topology)
		if err != nil {
			return nil, err
		}
		if h, held := a.Held[pod.UID]; held {
			return &h, nil
		}
	}
	return nil, nil
}

// placesOf returns the places that a subset selects, as labels of a node; one without labels if it selects none.
func placesOf(s *kruise.Subset) (out []map[string]string) {
	nodes := nodesOf(&s.NodeSelectorTerm)
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		for _, value := range nodes[key] {
			out = append(out, map[string]string{key: value})
		}
	}
	if len(out) == 0 {
		out = []map[string]string{nil}
	}
	return out
}

func (h *holds) recordHold(held *decision.Hold) {
	if h.told == nil {
		h.told = held
	}
}

// movesPods reports whether a write would make a child move pods to another template without a decision of its controller. That is so for a
// native child, and for a child whose controller has not created pods of its first template yet.
func (t *reconcileRound) movesPods(c *child, p *subsetState, w desiredChild) bool {
	fresh := !c.observed || c.pods == 0 && c.replicas > 0
	return (t.kind.isNative() || fresh) && (c.GetLabels()[kruise.ControllerRevisionHashKey] != t.history.Update.Name ||
		!samePatch(c.GetAnnotations()[kruise.SubsetPatchKey], string(p.Patch.Raw)) || w.partition < min(c.partition, w.replicas))
}

// scaleHeld writes the replicas of a child whose template is held, and changes nothing else.
func (t *reconcileRound) scaleHeld(ctx context.Context, p *subsetState) error {
	written, err := t.scaleChild(ctx, p.child, p.replicas)
	if err == nil {
		p.child = written
	}
	return err
}

// scaleChild writes the replicas of a child, and changes nothing else.
func (t *reconcileRound) scaleChild(ctx context.Context, c *child, replicas int32) (*child, error) {
	o := c.DeepCopyObject().(client.Object)
	switch set := o.(type) {
	case *appsv1.StatefulSet:
		set.Spec.Replicas = &replicas
	case *appsv1.Deployment:
		set.Spec.Replicas = &replicas
	case *kruise.CloneSet:
		set.Spec.Replicas = &replicas
	case *kruise.StatefulSet:
		set.Spec.Replicas = &replicas
	}
	if err := t.r.Client.Update(ctx, o); err != nil {
		return nil, fmt.Errorf("scaling the %s of subset %s: %w", c.kind.Kind, c.subsetName(), err)
	}
	written := c.kind.read(o)
	written.kind = c.kind
	return &written, nil
}

// surplusToDelete returns the surplus children that may be deleted now. Children of another kind than the template's are held with the update,
// since the update replaces them.
func (t *reconcileRound) surplusToDelete(ctx context.Context) (out []*child, err error) {
	for _, c := range t.surplus {
		held, err := t.heldSurplus(ctx, c)
		if err != nil {
			return nil, err
		}
		if held == nil {
			out = append(out, c)
		}
	}
	return out, nil
}

// heldSurplus returns the hold because of which a surplus child stays, nil if it may be deleted. A hold of its subset by placement/allocation
// holds it too: the subset stays as it is, so no child of another kind replaces its child.
func (t *reconcileRound) heldSurplus(ctx context.Context, c *child) (held *decision.Hold, err error) {
	i := slices.IndexFunc(t.replaced, func(p *subsetState) bool { return p.child == c })
	if i < 0 {
		return nil, nil
	}
	if h := t.placement.HeldAt(t.replaced[i].Name); h != nil {
		held = &decision.Hold{Rule: h.Rule, Reason: h.Reason, Message: h.Message, Until: h.Until}
		t.holds.recordHold(held)
		return held, nil
	}
	a, err := t.askHolds(ctx)
	if err != nil {
		return nil, err
	}
	held = a.Whole
	for _, pod := range t.replaced[i].pods {
		if h, ok := a.Held[pod.UID]; ok && held == nil {
			held = &h
		}
	}
	t.holds.recordHold(held)
	return held, nil
}

// toCreate returns the UnitedDeployment, and the revision, from which the missing child of a subset is created. While the update is held, that is
// the current revision, so that no pods of the held revision are created. It returns nil if no child is to be created now, because the kind of
// the children changes: meanwhile the existing children stay.
func (t *reconcileRound) toCreate(ctx context.Context, p *subsetState) (*kruise.UnitedDeployment, string, error) {
	for _, other := range t.replaced {
		if other.Name != p.Name {
			continue
		}
		if held, err := t.heldSurplus(ctx, other.child); err != nil || held != nil {
			return nil, "", err
		}
	}
	current := t.history.Current
	if i := slices.IndexFunc(t.history.All, func(rev *appsv1.ControllerRevision) bool { return rev.Name == t.d.Status.CurrentRevision }); i >= 0 {
		current = t.history.All[i]
	}
	update := t.history.Update.Name
	if current == nil || current.Name == update || !t.hasChildren() && len(t.surplus) == 0 {
		return t.d, update, nil
	}
	a, err := t.askHolds(ctx)
	if err != nil {
		return nil, "", err
	}
	held := a.Whole
	if held == nil {
		held, err = t.heldNew(ctx, p, t.d, update)
	}
	if err != nil || held == nil || held.IsWholeWorkload() && held.NewPods == decision.NewPodsUpdate {
		return t.d, update, err
	}
	t.holds.recordHold(held)
	then, err := decodeTemplate(current.Data.Raw)
	if err != nil {
		return nil, "", fmt.Errorf("reading the template of revision %s: %w", current.Name, err)
	}
	if k, ok := kindOf(then); !ok || k.GroupVersionKind != t.kind.GroupVersionKind {
		return nil, "", nil
	}
	d := t.d.DeepCopy()
	d.Spec.Template = *then
	return d, current.Name, nil
}

// updateHold sets the condition UpdateHeld, and records an event for each new reason.
func (t *reconcileRound) updateHold() {
	h := t.holds.told
	if h == nil {
		t.removeCondition(kruise.UpdateHeld)
		t.r.resetRecordedEvent(t.d, kruise.UpdateHeld)
		return
	}
	message := fmt.Sprintf("%s (rule %s)", h.Message, h.Rule)
	t.setCondition(kruise.UpdateHeld, metav1.ConditionTrue, h.Reason, message)
	t.r.recordEventOnce(t.d, kruise.UpdateHeld, h.Reason+": "+message)
}
