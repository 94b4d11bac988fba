// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"errors"
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
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/step"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// Errors that the conditions tell apart.
type (
	provisionError struct{ error }
	updateError    struct{ error }
)

// act creates, updates and deletes children (UD-09, UD-10). What a policy holds as a whole
// is neither created nor deleted, but goes on to a new template.
func (t *round) act(ctx context.Context, a allocated) error {
	if err := t.deleteDuplicates(ctx); err != nil {
		return provisionError{err}
	}
	if a.held == nil {
		if err := errors.Join(t.create(ctx), t.reduceSurplus(ctx)); err != nil {
			t.warnOfFailure(err)
			return provisionError{err}
		}
	}
	if err := t.update(ctx); err != nil {
		t.warnOfFailure(err)
		return updateError{err}
	}
	if err := t.unstick(ctx); err != nil {
		return updateError{err}
	}
	t.r.settled(t.d, kruise.FailedUpdateSubsetReason)
	return nil
}

// warnOfFailure records an event of a failure, unless the next round finds what it lost a race to.
func (t *round) warnOfFailure(err error) {
	if !apierrors.IsConflict(err) {
		t.r.once(t.d, kruise.FailedUpdateSubsetReason, err.Error())
	}
}

func (e provisionError) Unwrap() error { return e.error }
func (e updateError) Unwrap() error    { return e.error }

// create creates the children that are missing. The cache may not show one that was created
// a moment ago, so the API server is asked first.
func (t *round) create(ctx context.Context) error {
	var names []string
	var acts []func() error
	if !slices.ContainsFunc(t.parts, func(p *part) bool { return p.child == nil }) {
		return nil
	}
	for _, p := range t.parts {
		if p.child != nil {
			continue
		}
		d, revision, err := t.toCreate(ctx, p)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		list := t.kind.makeList()
		subset := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{kruise.SubsetNameKey: p.Name})}
		if err := t.r.live.List(ctx, list, client.InNamespace(t.d.Namespace), subset); err != nil {
			return fmt.Errorf("looking for the %s of subset %s: %w", t.kind.Kind, p.Name, err)
		}
		there, err := owned(t.d, t.kind, list)
		if err != nil {
			return fmt.Errorf("looking for the %s of subset %s: %w", t.kind.Kind, p.Name, err)
		}
		if len(there) > 0 {
			t.sooner(step.Soon)
			continue
		}
		names = append(names, p.Name)
		acts = append(acts, func() error {
			o, err := build(d, t.kind, p.Subset, revision, wanted{replicas: p.replicas, partition: p.partition})
			if err == nil {
				err = t.r.client.Create(ctx, o)
			}
			if err != nil {
				return fmt.Errorf("creating the %s of subset %s: %w", t.kind.Kind, p.Name, message.HideDrawnName(err, o.GetGenerateName()))
			}
			c := t.kind.read(o)
			c.kind = t.kind
			p.child = &c
			return nil
		})
	}
	if len(acts) == 0 {
		return nil
	}
	if err := batch.SlowStart(t.r.writes, 1, acts); err != nil {
		return err
	}
	slices.Sort(names)
	t.r.events.Eventf(t.d, corev1.EventTypeNormal, kruise.SuccessfulUpdateSubsetReason, kruise.CreateSubsetMessage, len(names), strings.Join(names, ", "))
	return nil
}

func (t *round) deleteDuplicates(ctx context.Context) error {
	err := t.deleteAll(ctx, t.duplicates)
	if err != nil {
		t.r.once(t.d, kruise.FailedDeleteDuplicatedSubsetsReason, err.Error())
	}
	return err
}

// deleteAll deletes children, each if it is the one that was seen.
func (t *round) deleteAll(ctx context.Context, all []*child) error {
	acts := make([]func() error, len(all))
	for i, c := range all {
		acts[i] = func() error {
			uid := c.GetUID()
			err := t.r.client.Delete(ctx, c.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %s %s of subset %s: %w", c.kind.Kind, c.GetName(), c.name(), err)
			}
			return nil
		}
	}
	return batch.Parallel(t.r.writes, acts)
}

// update writes the children that are not as they are to be (UD-09).
func (t *round) update(ctx context.Context) error {
	var acts []func() error
	for _, p := range t.parts {
		c := p.child
		if c == nil || c.GetDeletionTimestamp() != nil || c.GetUID() == "" {
			continue
		}
		w := wanted{selector: c.selector, replicas: p.replicas, partition: p.partition, unavailable: t.unavailable(p)}
		if t.kind.Kind == "Deployment" {
			w.partition = c.partition
		}
		if !t.differs(c, p, w) {
			continue
		}
		if t.moves(c, p, w) {
			held, err := t.heldTemplate(ctx, p)
			if err != nil {
				return err
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
			if err := onto(o, t.d, t.kind, p.Subset, t.history.Update.Name, w, true); err != nil {
				return err
			}
			if err := t.r.client.Update(ctx, o); err != nil {
				return fmt.Errorf("updating the %s of subset %s: %w", t.kind.Kind, p.Name, err)
			}
			written := t.kind.read(o)
			written.kind = t.kind
			p.child = &written
			return nil
		})
	}
	return batch.SlowStart(t.r.writes, 1, acts)
}

func (t *round) differs(c *child, p *part, w wanted) bool {
	return c.GetLabels()[kruise.ControllerRevisionHashKey] != t.history.Update.Name || c.GetLabels()[kruise.SubsetNameKey] != p.Name ||
		c.replicas != w.replicas || c.partition != w.partition || t.otherUnavailable(c, p, w) ||
		!samePatch(c.GetAnnotations()[kruise.SubsetPatchKey], string(p.Patch.Raw))
}

// otherUnavailable reports whether a child has another maxUnavailable than the template, or another one than that
// it is raised to.
func (t *round) otherUnavailable(c *child, p *part, w wanted) bool {
	n, rolls := t.templateUnavailable(p)
	if w.unavailable > 0 {
		n = w.unavailable
	}
	return rolls && c.unavailable != n
}

// unavailable is maxUnavailable of a subset with pods that wait for room, so that they do not
// keep an update from the others (UD-06); 0 leaves what the template says.
func (t *round) unavailable(p *part) int {
	if t.strategy != placement.Reserve || p.child == nil || p.reserved == 0 {
		return 0
	}
	n := int(p.replicas) - int(p.child.ready) + p.late
	if most, rolls := t.templateUnavailable(p); !rolls || n <= most {
		return 0
	}
	return n
}

// templateUnavailable is maxUnavailable as the template has it, and whether children of the template have one
// that can be raised.
func (t *round) templateUnavailable(p *part) (n int, rolls bool) {
	switch {
	case t.d.Spec.Template.CloneSetTemplate != nil:
		return cloneSetUnavailable(&t.d.Spec.Template.CloneSetTemplate.Spec, p.replicas), true
	case t.d.Spec.Template.DeploymentTemplate != nil:
		spec := &t.d.Spec.Template.DeploymentTemplate.Spec
		return deploymentUnavailable(spec, p.replicas), spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType
	}
	return 0, false
}

// unstick deletes pods of native StatefulSets that an update never reaches: they are not
// ready, and so their StatefulSet waits for them (UD-11).
func (t *round) unstick(ctx context.Context) error {
	if t.d.Spec.Template.StatefulSetTemplate == nil {
		return nil
	}
	var stuck []*corev1.Pod
	for _, p := range t.parts {
		if p.child == nil || !p.child.observed {
			continue
		}
		set, ok := p.child.Object.(*appsv1.StatefulSet)
		if !ok || set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType { // pods wait for their user
			continue
		}
		first := int(p.partition) // the partition counts from the first ordinal
		if set.Spec.Ordinals != nil {
			first += int(set.Spec.Ordinals.Start)
		}
		for _, pod := range p.pods {
			if ordinal(pod.Name) < first || t.updated(pod) || ready(pod) || pod.Labels[kruise.ControllerRevisionHashKey] == "" {
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
			t.holds.tell(&h)
			continue
		}
		acts = append(acts, func() error {
			// The pod as it was seen: it may have become ready since. The webhook of pods asks its budget.
			err := t.r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
			if apierrors.IsConflict(err) {
				return nil // it has changed, and that brings the next round
			}
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting pod %s, which an update does not reach: %w", pod.Name, err)
			}
			return nil
		})
	}
	return batch.Parallel(t.r.writes, acts)
}

// ordinal is that of the pod of a StatefulSet, -1 if the name has none.
func ordinal(name string) int {
	n := -1
	if _, err := fmt.Sscanf(name[strings.LastIndexByte(name, '-')+1:], "%d", &n); err != nil {
		return -1
	}
	return n
}
