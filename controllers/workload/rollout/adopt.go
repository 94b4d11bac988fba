// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// Orphans is the value of OwnerIndex for objects that no controller owns.
const Orphans = "orphans"

// adoptPods adopts pods for the workload and adds them to a list: the pods that no controller owns, that
// its selector matches and that its kind accepts (Type.Adopts). complete is false if the turn
// of the round ended before all were adopted. The round must not go on then: the pods that are left would count as missing, and
// other pods would be created in their place.
func (r *Round) adoptPods(ctx context.Context, pods []*corev1.Pod) (all []*corev1.Pod, complete bool, err error) {
	c := r.c
	if c.typ.Adopts == nil || r.Spec.Selector.Empty() {
		return pods, true, nil
	}
	list := &corev1.PodList{}
	if err := c.Client.List(ctx, list, client.InNamespace(r.Workload.GetNamespace()), client.MatchingFields{OwnerIndex: Orphans},
		client.MatchingLabelsSelector{Selector: r.Spec.Selector}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, fmt.Errorf("listing pods without an owner: %w", err)
	}
	known := make(map[string]bool, len(pods))
	for _, p := range pods {
		// A pod in the list may have been released, and the cache may show that by now. The workload may adopt it again.
		known[string(p.UID)] = metav1.IsControlledBy(p, r.Workload)
	}
	var orphans []*corev1.Pod
	for i := range list.Items {
		p := &list.Items[i]
		if p.DeletionTimestamp == nil && !known[string(p.UID)] && c.typ.Adopts(r.Workload, p) {
			orphans = append(orphans, p)
		}
	}
	adopted, acts := make([]*corev1.Pod, len(orphans)), make([]func() error, len(orphans))
	for i, orphan := range orphans {
		acts[i] = func() error {
			pod := orphan.DeepCopy()
			if err := r.adoptObject(ctx, orphan, pod); err != nil {
				return fmt.Errorf("adopting pod %s: %w", pod.Name, err)
			}
			adopted[i] = pod
			return nil
		}
	}
	if len(acts) > 0 {
		if err := r.mayAdopt(ctx); err != nil {
			return nil, false, err
		}
	}
	err = r.RunParallel(acts)
	complete = !slices.Contains(adopted, nil)
	for _, p := range adopted {
		if p != nil { // recorded as created, since the cache does not list the pod for the workload yet
			c.overlay.RecordCreated(r.Workload.GetUID(), p)
		}
	}
	if err != nil || !complete {
		return nil, false, err
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		return slices.ContainsFunc(adopted, func(a *corev1.Pod) bool { return a.UID == p.UID })
	})
	return append(pods, adopted...), true, nil
}

// adoptRevisions adopts the revisions that no controller owns and that the selector matches. Memory
// has them until the cache shows them as the workload's. Of the owned revisions it returns those
// that the selector matches, and removes the owner reference from the others. Workloads whose pods have ordinals
// adopt only revisions with their own name. Otherwise another workload with the same selector would find its revision adopted, and
// replace all its pods by pods of a new revision.
func (r *Round) adoptRevisions(ctx context.Context, owned []appsv1.ControllerRevision) ([]appsv1.ControllerRevision, error) {
	if r.c.typ.Adopts == nil || r.Spec.Selector.Empty() {
		return owned, nil
	}
	var out []appsv1.ControllerRevision
	for i := range owned {
		if rev := &owned[i]; !r.Spec.Selector.Matches(labels.Set(rev.Labels)) {
			if err := r.removeOwner(ctx, rev, rev.DeepCopy()); err != nil {
				return nil, fmt.Errorf("releasing revision %s: %w", rev.Name, err)
			}
			continue
		}
		out = append(out, owned[i])
	}
	list := &appsv1.ControllerRevisionList{}
	if err := r.c.Client.List(ctx, list, client.InNamespace(r.Workload.GetNamespace()), client.MatchingFields{OwnerIndex: Orphans},
		client.MatchingLabelsSelector{Selector: r.Spec.Selector}); err != nil {
		return nil, fmt.Errorf("listing revisions without an owner: %w", err)
	}
	for i := range list.Items {
		rev := &list.Items[i]
		named := rev.Name == r.Workload.GetName()+"-"+revision.ShortHash(rev.Name)
		if rev.DeletionTimestamp != nil || r.memory.revisions.isUnseen(rev) || r.c.typ.Ordinals && !named {
			continue
		}
		if err := r.adoptRevision(ctx, rev, nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// adoptRevision makes the workload the controller of a revision, if it has not changed since it was read, and gives it labels.
func (r *Round) adoptRevision(ctx context.Context, rev *appsv1.ControllerRevision, labels map[string]string) error {
	err := r.mayAdopt(ctx)
	if err == nil {
		was := rev.DeepCopy()
		for key, value := range labels {
			metav1.SetMetaDataLabel(&rev.ObjectMeta, key, value)
		}
		err = r.adoptObject(ctx, was, rev)
	}
	if err != nil {
		return fmt.Errorf("adopting revision %s: %w", rev.Name, err)
	}
	r.memory.revisions[rev.Name] = ownRevision{rev, r.Now}
	return nil
}

// mayAdopt reads the workload past the cache before it adopts anything. If the workload was
// deleted, or replaced by another one of its name, adopted objects would be left behind or deleted with it.
func (r *Round) mayAdopt(ctx context.Context) error {
	found := r.c.typ.New()
	if err := r.c.Live.Get(ctx, client.ObjectKeyFromObject(r.Workload), found); err != nil {
		return fmt.Errorf("reading the %s past the cache, to adopt what it selects: %w", r.c.typ.Kind, err)
	}
	if found.GetUID() != r.Workload.GetUID() || found.GetDeletionTimestamp() != nil {
		return fmt.Errorf("adopting what %s %s selects: it has been deleted, and the cache does not show it yet", r.c.typ.Kind, r.Workload.GetName())
	}
	return nil
}

// adoptObject makes the workload the controller of an object, unless the object has changed since it was read.
func (r *Round) adoptObject(ctx context.Context, was, now client.Object) error {
	refs := slices.DeleteFunc(slices.Clone(now.GetOwnerReferences()), func(o metav1.OwnerReference) bool { return o.UID == r.Workload.GetUID() })
	now.SetOwnerReferences(append(refs, *metav1.NewControllerRef(r.Workload, r.c.typ.GroupVersionKind)))
	return r.c.Client.Patch(ctx, now, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
}

// removeOwner removes the owner reference of the workload from an object. It is no error if the object is gone.
func (r *Round) removeOwner(ctx context.Context, was, now client.Object) error {
	now.SetOwnerReferences(slices.DeleteFunc(slices.Clone(now.GetOwnerReferences()), func(o metav1.OwnerReference) bool { return o.UID == r.Workload.GetUID() }))
	return client.IgnoreNotFound(r.c.Client.Patch(ctx, now, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})))
}

// isUnseen reports whether the controller wrote a revision that the cache does not show yet.
func (m Revisions) isUnseen(rev *appsv1.ControllerRevision) bool {
	own, ok := m[rev.Name]
	return ok && own.UID == rev.UID
}

// adopterRequests returns the workloads that may adopt an object without a controller. The deletion of such an
// object is an event for them as well, since they may wait for its name.
func (c *Controller) adopterRequests(ctx context.Context, pod client.Object) ([]reconcile.Request, error) {
	if c.typ.Adopts == nil || metav1.GetControllerOfNoCopy(pod) != nil {
		return nil, nil
	}
	return reconcile.ListRequests(ctx, c.Client, c.typ.NewList(), func(workload client.Object) bool {
		spec, err := c.kind.ReadSpec(workload) // if it cannot be read, the round of that workload reports it
		return err == nil && !spec.Selector.Empty() && spec.Selector.Matches(labels.Set(pod.GetLabels()))
	}, client.InNamespace(pod.GetNamespace()))
}
