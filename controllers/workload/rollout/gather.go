// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
)

// OwnerIndex finds objects by the UID of the controller that owns them.
const OwnerIndex = "ownerRefUID"

// beginRound starts a round: it reads everything that the round needs. It returns no facts if the
// cache has not shown a write of the controller in time.
func (c *Controller) beginRound(ctx context.Context, workload client.Object, m *Memory) (*Round, *Facts, error) {
	workload = workload.DeepCopyObject().(client.Object)
	r := &Round{c: c, Workload: workload, Now: c.Now(), memory: m}
	if c.window != nil {
		r.writers = c.window.NewShare()
	}
	var err error
	if r.Spec, err = c.kind.ReadSpec(workload); err != nil {
		return r, nil, err
	}
	if r.Spec.Invalid != nil {
		ctrl.LoggerFrom(ctx).Error(r.Spec.Invalid, "a number of the strategy cannot be read and counts as 0")
	}
	pods, current, err := r.listPods(ctx)
	if err == nil && current {
		pods, current, err = r.adoptPods(ctx, pods)
	}
	if err != nil || !current {
		return r, nil, err
	}
	active, gone, err := r.splitActivePods(ctx, pods)
	if err != nil {
		return r, nil, err
	}
	guest, _ := c.kind.(KindWithSharedPods)
	if guest != nil {
		if active, err = guest.FilterPods(ctx, r, active); err != nil {
			return r, nil, err
		}
		guest.ResolvePodCounts(workload, &r.Spec, active)
		if err := r.readNamespaces(ctx, active); err != nil {
			return r, nil, err
		}
	}
	if own, ok := c.kind.(KindWithNodeCounts); ok {
		if err := own.ResolveSpec(ctx, r, &r.Spec); err != nil {
			return r, nil, err
		}
	}
	templates, err := c.kind.ResolveTemplates(ctx, r)
	if err != nil {
		return r, nil, err
	}
	restarting, err := r.restartsUnderWay(ctx)
	if err != nil {
		return r, nil, err
	}
	snapshot := c.Engine.ActiveSnapshot()
	subject := facts.ObjectSubject(c.typ.Group, c.typ.Kind, workload)
	f := &Facts{
		Spec: r.Spec, Workload: workload, Now: r.Now, Templates: templates, Gone: gone, kind: c.kind,
		restarting: restarting,
		Subject:    subject, Policies: snapshot.RevisionFor(subject), Bundles: snapshot.BundlesFor(subject),
	}
	if err := r.readNamespace(ctx, f); err != nil {
		return r, nil, err
	}
	return r, r.completeFacts(f, active), nil
}

// completeFacts adds the facts of pods.
func (r *Round) completeFacts(f *Facts, active []*corev1.Pod) *Facts {
	next := *f
	next.Pods = r.memory.facts.Update(active, f.Terms, r.c.topology, func(p *corev1.Pod) bool {
		return f.Templates.HasRevision(p, f.Templates.UpdateRevision()) && len(f.claimGrowth(p).Differ) == 0
	})
	next.asked = map[*facts.Pod]bool{}
	for _, p := range next.Pods {
		if r.c.kind.DeletionAsked(f.Workload, p.Pod) {
			next.asked[p] = true
		}
	}
	if b, ok := r.c.kind.(KindWithCandidateFilter); ok {
		next.bound = b.MovableFilter(r, &next)
	}
	next.Difference = r.c.kind.ComputeDifference(&next)
	return &next
}

// updateFacts returns the facts with pods as they were written since. It adds pods that the facts do not have,
// in the order in which the next round would find them. A create whose first answer was lost may return a
// pod that the facts have already.
func (r *Round) updateFacts(f *Facts, written []*corev1.Pod) *Facts {
	if len(written) == 0 {
		return f
	}
	latest := make(map[types.UID]*corev1.Pod, len(written))
	for _, p := range written {
		latest[p.UID] = p
	}
	active := make([]*corev1.Pod, len(f.Pods), len(f.Pods)+len(written))
	for i, p := range f.Pods {
		active[i] = p.Pod
		if now := latest[p.UID]; now != nil {
			active[i] = now
			delete(latest, p.UID)
		}
	}
	active = slices.AppendSeq(active, maps.Values(latest))
	slices.SortFunc(active, r.c.comparePods)
	return r.completeFacts(f, active)
}

// listPods lists the pods of the workload, as the cache shows them, with the controller's later
// writes. current is false while the cache lags behind for too long.
func (r *Round) listPods(ctx context.Context) (pods []*corev1.Pod, current bool, err error) {
	c, uid := r.c, r.Workload.GetUID()
	mark := c.overlay.TakeMark()
	list := &corev1.PodList{}
	in := []client.ListOption{client.InNamespace(r.Workload.GetNamespace()), client.UnsafeDisableDeepCopy}
	switch {
	case c.ownsPods():
		in = append(in, client.MatchingFields{OwnerIndex: string(uid)})
	case c.typ.Lists != nil:
		in = append(in, c.typ.Lists(r.Workload))
	default:
		in = append(in, client.MatchingLabelsSelector{Selector: r.Spec.Selector})
	}
	if err := c.Client.List(ctx, list, in...); err != nil {
		return nil, false, fmt.Errorf("listing pods: %w", err)
	}
	pods = make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	pods, late := c.overlay.ApplyWrites(uid, mark, pods, c.timeout)
	if len(late) == 0 {
		return pods, true, nil
	}
	return pods, false, r.catchUp(ctx, late)
}

// ownsPods reports whether workloads of the kind own their pods.
func (c *Controller) ownsPods() bool { return c.typ.Workloads == nil }

// catchUp handles writes that the cache has not shown for too long (CS-19). With the
// gate, they are dropped and the workload is reconciled again in 10 s. Without it, each pod is read from the
// API server, and the workload waits until the cache is correct.
func (r *Round) catchUp(ctx context.Context, late []*corev1.Pod) error {
	r.c.leaks(r.Workload.GetNamespace(), r.Workload.GetName())
	r.RequeueAfter(10 * time.Second)
	for _, pod := range late {
		found := &corev1.Pod{}
		err := r.c.Live.Get(ctx, client.ObjectKeyFromObject(pod), found)
		switch {
		case r.c.gates.DropLateExpectations, apierrors.IsNotFound(err), err == nil && found.UID != pod.UID:
			r.c.overlay.DropWrite(r.Workload.GetUID(), pod.UID)
		case err != nil:
			return fmt.Errorf("reading pod %s past the cache: %w", pod.Name, err)
		}
	}
	return nil
}

// splitActivePods separates active pods, sorted, from those that are gone, and releases owned pods that
// the selector does not match any more (CS-16).
func (r *Round) splitActivePods(ctx context.Context, pods []*corev1.Pod) (active, gone []*corev1.Pod, err error) {
	for _, pod := range pods {
		switch {
		case r.c.ownsPods() && !metav1.IsControlledBy(pod, r.Workload): // released, but the cache does not show it yet
		case pod.DeletionTimestamp == nil && r.c.ownsPods() && !r.Spec.Selector.Matches(labels.Set(pod.Labels)): // also a pod that has ended
			if err := r.releasePod(ctx, pod); err != nil {
				return nil, nil, err
			}
		case IsInactive(pod):
			gone = append(gone, pod)
		default:
			active = append(active, pod)
		}
	}
	slices.SortFunc(active, r.c.comparePods)
	return active, gone, nil
}

// comparePods orders pods that policies rank the same: by name and then by namespace; first by
// node, the last name first, for kinds that put a pod on each node.
func (c *Controller) comparePods(a, b *corev1.Pod) int {
	node := 0
	if c.typ.NodeOf != nil {
		node = strings.Compare(c.typ.NodeOf(b), c.typ.NodeOf(a))
	}
	return cmp.Or(node, strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
}

// IsInactive reports whether a pod is finished or terminating.
func IsInactive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// releasePod removes the owner reference from a pod.
func (r *Round) releasePod(ctx context.Context, pod *corev1.Pod) error {
	before, pod := pod, pod.DeepCopy()
	if err := r.removeOwner(ctx, before, pod); err != nil {
		return fmt.Errorf("releasing pod %s: %w", pod.Name, err)
	}
	r.RecordWrite(ctx, pod, pod, nil)
	return nil
}
