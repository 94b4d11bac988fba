// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/invariant"
)

// The actions of other clients than the controller in a Harness, and their reads.

// CountPods counts the pods.
func (l *Harness) CountPods() invariant.Observation { return l.cluster.countPods() }

// CurrentWorkload is the workload as the API server has it.
func (l *Harness) CurrentWorkload() client.Object { return l.cluster.workload }

// ListPods returns all pods, also terminating ones, by name.
func (l *Harness) ListPods() []*corev1.Pod { return l.cluster.sortedPods() }

// FindPod returns the pod with a name, nil if there is none.
func (l *Harness) FindPod(name string) *corev1.Pod { return l.cluster.findPod(name) }

// ListObjects returns all objects of a type, by name.
func ListObjects[O client.Object](l *Harness) []O { return listSorted[O](l.cluster.objects) }

// ShowNext makes the cache receive the next event of a type, nil for any, and reports whether there
// was one.
func (l *Harness) ShowNext(of client.Object) bool {
	return l.cluster.showNext(context.Background(), of)
}

// ShowAll makes the cache catch up with all events of a type, nil for all types.
func (l *Harness) ShowAll(of client.Object) {
	for l.ShowNext(of) {
	}
}

// ChangeWorkload changes the workload as a user does, and the cache shows it at once.
func (l *Harness) ChangeWorkload(edit func(client.Object)) {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	now := c.workload.DeepCopyObject().(client.Object)
	edit(now)
	now.SetGeneration(now.GetGeneration() + 1)
	l.requireNoError(c.server.Update(ctx, now))
	l.requireNoError(c.commitWrite(ctx, now, false))
	l.ShowAll(c.workload)
}

// OrphanDependents deletes the workload as kubectl delete --cascade=orphan does, and creates it again: its
// pods, revisions and claims lose their owner. The cache shows the new workload at once, and the
// rest later.
func (l *Harness) OrphanDependents() {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	old := c.workload
	c.objects.forEachObject(func(o client.Object) {
		refs := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return ref.UID == old.GetUID() })
		if len(refs) == len(o.GetOwnerReferences()) {
			return
		}
		o = o.DeepCopyObject().(client.Object)
		o.SetOwnerReferences(refs)
		l.requireNoError(c.server.Update(ctx, o))
		l.requireNoError(c.commitWrite(ctx, o, false))
	})
	now := old.DeepCopyObject().(client.Object)
	l.requireNoError(c.server.Delete(ctx, old.DeepCopyObject().(client.Object)))
	reflect.ValueOf(c.typ.Status(now)).Elem().SetZero()
	now.SetUID("")
	now.SetGeneration(1)
	l.requireNoError(c.storeObject(ctx, now))
	l.requireNoError(c.commitWrite(ctx, now, false))
	l.ShowAll(now)
}

// Update changes a pod as a user does. The cache does not show it yet.
func (l *Harness) Update(p *corev1.Pod) {
	l.Helper()
	l.requireNoError(client.IgnoreNotFound(l.cluster.server.Update(context.Background(), p)))
	l.requireNoError(l.cluster.commitWrite(context.Background(), p, false))
}

// UpdateStatus changes the status of a pod as a kubelet does. The cache does not show it
// yet.
func (l *Harness) UpdateStatus(p *corev1.Pod) {
	l.Helper()
	l.requireNoError(l.cluster.server.Status().Update(context.Background(), p))
	l.requireNoError(l.cluster.commitWrite(context.Background(), p, false))
}

// SetNode adds or changes a node; the cache shows it at once. Only kinds that read nodes see
// it.
func (l *Harness) SetNode(n *corev1.Node) {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	n = n.DeepCopy()
	if c.objects.getObject(n) == nil {
		l.requireNoError(c.storeObject(ctx, n))
		c.nodes = append(c.nodes, n)
	} else {
		status := n.Status.DeepCopy()
		l.requireNoError(c.server.Update(ctx, n))
		n.Status = *status
		l.requireNoError(c.server.Status().Update(ctx, n))
	}
	l.requireNoError(c.commitWrite(ctx, n, false))
	l.ShowAll(n)
}

// DropNode removes a node. Its pods stay until the garbage collector deletes them.
func (l *Harness) DropNode(name string) {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	l.requireNoError(c.server.Delete(ctx, n))
	c.nodes = slices.DeleteFunc(slices.Clone(c.nodes), func(o *corev1.Node) bool { return o.Name == name })
	l.requireNoError(c.commitWrite(ctx, n, true))
	l.ShowAll(n)
}

// AddObject adds an object of another client; the cache shows it at once.
func (l *Harness) AddObject(o client.Object) {
	l.Helper()
	o = o.DeepCopyObject().(client.Object)
	l.requireNoError(l.cluster.storeObject(context.Background(), o))
	l.requireNoError(l.cluster.commitWrite(context.Background(), o, false))
	l.ShowAll(o)
}

// FailPod makes a pod end with an error.
func (l *Harness) FailPod(p *corev1.Pod) {
	l.Helper()
	p = p.DeepCopy()
	p.Status.Phase = corev1.PodFailed
	l.UpdateStatus(p)
}

// SetReady makes the first container of a pod, and with it the pod, ready or not.
func (l *Harness) SetReady(p *corev1.Pod, ready bool) {
	l.Helper()
	p = p.DeepCopy()
	p.Status.ContainerStatuses[0].Ready = ready
	l.machines.setReadyCondition(p)
	l.UpdateStatus(p)
}

// Delete deletes a pod as kubectl delete and a drain do: it terminates until its kubelet
// has stopped it.
func (l *Harness) Delete(p *corev1.Pod) {
	l.Helper()
	l.requireNoError(client.IgnoreNotFound(l.cluster.server.Delete(context.Background(), p.DeepCopy())))
	l.requireNoError(l.cluster.commitWrite(context.Background(), p, false))
	l.ShowAll(p)
}

// DropClaim removes a claim, as kubectl delete does for one whose pods are on no node.
func (l *Harness) DropClaim(c *corev1.PersistentVolumeClaim) {
	l.Helper()
	l.requireNoError(l.cluster.server.Delete(context.Background(), c.DeepCopy()))
	l.letGo(c, inUse)
	l.requireNoError(l.cluster.commitWrite(context.Background(), c, true))
	l.ShowAll(c)
}

// DropPodFromCache makes the cache show the deletion of a pod that still terminates.
func (l *Harness) DropPodFromCache(p *corev1.Pod) {
	l.Helper()
	l.requireNoError(l.cluster.server.Delete(context.Background(), p.DeepCopy()))
	l.cluster.updateCache(context.Background(), p, nil)
}

// StepPod does the next step of the scheduler or the kubelet for a pod, and reports whether there
// was any.
func (l *Harness) StepPod(name string) bool {
	l.Helper()
	was := l.FindPod(name)
	if was == nil {
		return false
	}
	p := was.DeepCopy()
	switch {
	case p.DeletionTimestamp != nil:
		return l.letGo(p, stopping)
	case p.Spec.NodeName == "":
		l.machines.schedulePod(p)
	default:
		l.machines.runPod(p)
	}
	return l.updateIfChanged(was, p)
}

// CompleteHooks completes the lifecycle hook that holds a pod, as its operator does,
// and reports whether there was one.
func (l *Harness) CompleteHooks(name string) bool {
	l.Helper()
	was := l.FindPod(name)
	if was == nil || was.DeletionTimestamp != nil {
		return false
	}
	p := was.DeepCopy()
	l.machines.completeHooks(p)
	return l.updateIfChanged(was, p)
}

func (l *Harness) updateIfChanged(was, p *corev1.Pod) bool {
	l.Helper()
	if equality.Semantic.DeepEqual(was, p) {
		return false
	}
	l.requireNoError(l.cluster.updatePod(context.Background(), was, p))
	return true
}

// letGo removes a finalizer, if the object has it.
func (l *Harness) letGo(o client.Object, finalizer string) bool {
	l.Helper()
	for _, f := range o.GetFinalizers() {
		if f == finalizer {
			l.requireNoError(l.cluster.letGo(context.Background(), o, finalizer))
			l.requireNoError(l.cluster.commitWrite(context.Background(), o, false))
			return true
		}
	}
	return false
}

// CollectClaims releases terminating claims that no pod uses, deletes claims whose pods are gone, and reports
// whether there were any.
func (l *Harness) CollectClaims() bool {
	l.Helper()
	used, pods := map[string]bool{}, map[types.UID]bool{}
	for _, p := range l.ListPods() {
		pods[p.UID] = true
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				used[v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	did := false
	for _, c := range ListObjects[*corev1.PersistentVolumeClaim](l) {
		orphaned := len(c.OwnerReferences) > 0 && !slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind != "Pod" || pods[r.UID]
		})
		switch {
		case used[c.Name]:
		case c.DeletionTimestamp != nil:
			did = l.letGo(c, inUse) || did
		case orphaned:
			l.requireNoError(l.cluster.server.Delete(context.Background(), c.DeepCopy()))
			l.requireNoError(l.cluster.commitWrite(context.Background(), c, false))
			did = true
		}
	}
	return did
}
