// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// Errors that are reported by different conditions.
type (
	provisionError struct{ error }
	updateError    struct{ error }
)

// applyAllocation creates, updates and deletes children (UD-09, UD-10). While a policy holds the whole allocation, no child
// is created or deleted, but children still get a new template. A child that cannot be written does not stop the writes of the others.
func (t *reconcileRound) applyAllocation(ctx context.Context, a allocated) error {
	var provisioned, failed error
	if a.held == nil {
		provisioned = t.deleteDuplicates(ctx)
		failed = message.JoinErrors(t.createChildren(ctx), t.reduceSurplus(ctx))
		provisioned = message.JoinErrors(provisioned, failed)
		t.keepWhatIsMissing()
	}
	updated := t.updateChildren(ctx)
	t.warnOfFailure(message.JoinErrors(failed, updated))
	var errs []error
	if provisioned != nil {
		errs = append(errs, provisionError{provisioned})
	}
	if updated = message.JoinErrors(updated, t.deleteStuckPods(ctx)); updated != nil {
		errs = append(errs, updateError{updated})
	}
	if len(errs) == 0 {
		t.r.resetRecordedEvent(t.d, kruise.FailedUpdateSubsetReason)
	}
	return message.JoinErrors(errs...)
}

// warnOfFailure records an event of a failure. A conflict is no failure, since the next round reads the object again.
func (t *reconcileRound) warnOfFailure(err error) {
	if err = dropConflicts(err); err != nil {
		t.r.recordEventOnce(t.d, kruise.FailedUpdateSubsetReason, err.Error())
	}
}

// dropConflicts removes conflicts from joined errors; the result is nil if there is no other error.
func dropConflicts(err error) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, one := range several.Unwrap() {
			rest = append(rest, dropConflicts(one))
		}
		return message.JoinErrors(rest...)
	}
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (e provisionError) Unwrap() error { return e.error }
func (e updateError) Unwrap() error    { return e.error }

// createChildren creates the children that are missing.
func (t *reconcileRound) createChildren(ctx context.Context) error {
	var errs []error
	var tried []*subsetState
	var acts []func() error
	for _, p := range t.parts {
		if p.child != nil {
			continue
		}
		act, err := t.planChild(ctx, p)
		if err != nil {
			p.refused = err
			errs = append(errs, err)
		}
		if act != nil {
			tried, acts = append(tried, p), append(acts, act)
		}
	}
	errs = append(errs, batch.SlowStartEach(t.r.writes, 1, acts))
	var names []string
	for _, p := range tried {
		if p.child != nil {
			names = append(names, p.Name)
		}
	}
	// usedRoom is also set if no child is missing any more, such as after a subset was removed from the spec: a later child may need room again.
	// A subset whose child is held does not wait for room.
	if len(names) > 0 || !slices.ContainsFunc(t.parts, func(p *subsetState) bool { return p.child == nil && !p.held }) {
		t.r.memory.GetOrCreate(t.d).usedRoom = true
	}
	if len(names) > 0 {
		slices.Sort(names)
		t.r.Events.Eventf(t.d, corev1.EventTypeNormal, kruise.SuccessfulUpdateSubsetReason, kruise.CreateSubsetMessage, len(names), strings.Join(names, ", "))
	}
	return message.JoinErrors(errs...)
}

// planChild returns a function that creates the child of a subset, nil if it is not to be created now. The cache may not show a child that was
// just created, so the API server is read first.
func (t *reconcileRound) planChild(ctx context.Context, p *subsetState) (act func() error, err error) {
	d, revision, err := t.toCreate(ctx, p)
	if err != nil || d == nil {
		p.held = err == nil
		return nil, err
	}
	list := t.kind.makeList()
	subset := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{kruise.SubsetNameKey: p.Name})}
	if err := t.r.Live.List(ctx, list, client.InNamespace(t.d.Namespace), subset); err != nil {
		return nil, fmt.Errorf("looking for the %s of subset %s: %w", t.kind.Kind, p.Name, err)
	}
	there, err := ownedChildren(t.d, t.kind, list)
	if err != nil {
		return nil, fmt.Errorf("looking for the %s of subset %s: %w", t.kind.Kind, p.Name, err)
	}
	if len(there) > 0 {
		t.requeueWithin(requeue.Soon)
		return nil, nil
	}
	return func() error {
		o, err := buildChild(d, t.kind, p.Subset, revision, desiredChild{replicas: p.replicas, partition: p.partition})
		if err == nil {
			err = t.r.Client.Create(ctx, o)
		}
		if err != nil {
			p.refused = fmt.Errorf("creating the %s of subset %s: %w", t.kind.Kind, p.Name, message.HideDrawnName(err, o.GetGenerateName()))
			return p.refused
		}
		c := t.kind.read(o)
		c.kind = t.kind
		p.child = &c
		return nil
	}, nil
}

// keepWhatIsMissing keeps replicas of children that are to be scaled in: as many as the children that could not be created should have,
// less those that surplus children keep. So the sum stays the same while pods have no place.
func (t *reconcileRound) keepWhatIsMissing() {
	missing := -t.kept
	for _, p := range t.parts {
		if p.refused != nil {
			missing += p.replicas
		}
	}
	for _, p := range t.parts {
		if p.child == nil || missing <= 0 {
			continue
		}
		if more := min(p.child.replicas-p.replicas, missing); more > 0 {
			p.replicas += more
			missing -= more
		}
	}
}

// deleteAll deletes the children with these UIDs, and returns those that were deleted.
func (t *reconcileRound) deleteAll(ctx context.Context, all []*child) (gone []*child, err error) {
	acts, done := make([]func() error, len(all)), make([]bool, len(all))
	for i, c := range all {
		acts[i] = func() error {
			uid := c.GetUID()
			err := t.r.Client.Delete(ctx, c.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %s %s of subset %s: %w", c.kind.Kind, c.GetName(), c.subsetName(), err)
			}
			done[i] = true
			return nil
		}
	}
	err = batch.RunParallel(t.r.writes, acts)
	for i, c := range all {
		if done[i] {
			gone = append(gone, c)
		}
	}
	return gone, err
}

// updateChildren writes the children that differ from their desired state (UD-09).
func (t *reconcileRound) updateChildren(ctx context.Context) error {
	var errs []error
	var acts []func() error
	for _, p := range t.parts {
		c := p.child
		if c == nil || c.GetDeletionTimestamp() != nil || c.GetUID() == "" {
			continue
		}
		w := desiredChild{selector: c.selector, replicas: p.replicas, partition: p.partition, unavailable: t.raisedUnavailable(p)}
		if t.kind.Kind == "Deployment" {
			w.partition = c.partition
		}
		if !t.needsUpdate(c, p, w) {
			continue
		}
		if t.movesPods(c, p, w) {
			held, err := t.heldTemplate(ctx, p)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if held != nil {
				if c.replicas != p.replicas {
					acts = append(acts, func() error { return t.scaleHeld(ctx, p) })
				}
				continue
			}
		}
		acts = append(acts, func() error {
			o := c.DeepCopyObject().(client.Object)
			if err := fillChild(o, t.d, t.kind, p.Subset, t.history.Update.Name, w, true); err != nil {
				return err
			}
			if err := t.r.Client.Update(ctx, o); err != nil {
				return fmt.Errorf("updating the %s of subset %s: %w", t.kind.Kind, p.Name, err)
			}
			written := t.kind.read(o)
			written.kind = t.kind
			p.child = &written
			return nil
		})
	}
	errs = append(errs, batch.SlowStartEach(t.r.writes, 1, acts))
	return message.JoinErrors(errs...)
}

func (t *reconcileRound) needsUpdate(c *child, p *subsetState, w desiredChild) bool {
	return c.GetLabels()[kruise.ControllerRevisionHashKey] != t.history.Update.Name || c.GetLabels()[kruise.SubsetNameKey] != p.Name ||
		c.replicas != w.replicas || c.partition != w.partition || t.otherUnavailable(c, p, w) ||
		!samePatch(c.GetAnnotations()[kruise.SubsetPatchKey], string(p.Patch.Raw))
}

// otherUnavailable reports whether maxUnavailable of a child differs from the template's, or from the value that it
// is raised to.
func (t *reconcileRound) otherUnavailable(c *child, p *subsetState, w desiredChild) bool {
	n, rolls := t.templateUnavailable(p)
	if w.unavailable > 0 {
		n = w.unavailable
	}
	return rolls && c.unavailable != n
}

// raisedUnavailable is maxUnavailable of a subset with pods that wait for room, so that these pods do not
// block the update of the other pods (UD-06). 0 means the value of the template.
func (t *reconcileRound) raisedUnavailable(p *subsetState) int {
	if t.strategy != placement.Reserve || p.child == nil || p.reserved == 0 {
		return 0
	}
	n := int(p.replicas) - int(p.child.ready) + p.late
	if most, rolls := t.templateUnavailable(p); !rolls || n <= most {
		return 0
	}
	return n
}

// templateUnavailable returns maxUnavailable of the template, and whether children of the template have a maxUnavailable
// that can be raised.
func (t *reconcileRound) templateUnavailable(p *subsetState) (n int, rolls bool) {
	switch {
	case t.d.Spec.Template.CloneSetTemplate != nil:
		return cloneSetUnavailable(&t.d.Spec.Template.CloneSetTemplate.Spec, p.replicas), true
	case t.d.Spec.Template.DeploymentTemplate != nil:
		spec := &t.d.Spec.Template.DeploymentTemplate.Spec
		return deploymentUnavailable(spec, p.replicas), spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType
	}
	return 0, false
}

// deleteStuckPods deletes pods of native StatefulSets that an update never reaches: the pods are not
// ready, and their StatefulSet waits for them (UD-11).
func (t *reconcileRound) deleteStuckPods(ctx context.Context) error {
	if t.d.Spec.Template.StatefulSetTemplate == nil {
		return nil
	}
	var stuck []*corev1.Pod
	for _, p := range t.parts {
		if p.child == nil || !p.child.observed {
			continue
		}
		set, ok := p.child.Object.(*appsv1.StatefulSet)
		if !ok || set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType { // with OnDelete a user deletes the pods
			continue
		}
		first := int(p.partition) // the partition counts from the first ordinal
		if set.Spec.Ordinals != nil {
			first += int(set.Spec.Ordinals.Start)
		}
		for _, pod := range p.pods {
			if podOrdinal(pod.Name) < first || t.isUpdated(pod) || isReady(pod) || pod.Labels[kruise.ControllerRevisionHashKey] == "" {
				continue
			}
			stuck = append(stuck, pod)
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	a, err := t.askHolds(ctx)
	if err != nil {
		return err
	}
	var acts []func() error
	for _, pod := range stuck {
		if h, held := a.Held[pod.UID]; held {
			t.holds.recordHold(&h)
			continue
		}
		acts = append(acts, func() error {
			// The resource version is a precondition, since the pod may have become ready since. The webhook of pods checks its budget.
			err := t.r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
			if apierrors.IsConflict(err) {
				return nil // the pod has changed, and that event starts the next round
			}
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting pod %s, which an update does not reach: %w", pod.Name, err)
			}
			return nil
		})
	}
	return batch.RunParallel(t.r.writes, acts)
}

// podOrdinal returns the ordinal in the name of a pod of a StatefulSet, -1 if the name has none.
func podOrdinal(name string) int {
	n, ok := facts.PodOrdinal(name)
	if !ok {
		return -1
	}
	return n
}
