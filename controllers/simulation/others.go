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

	"github.com/regatta-sh/regatta/controllers/workload/witness"
)

// What others than the controller do in a Life, and what they see.

// Look counts what there is.
func (l *Life) Look() witness.Sight { return l.cluster.look() }

// Current is the workload as the API server has it.
func (l *Life) Current() client.Object { return l.cluster.workload }

// Pods are those there are, terminating ones too, by name.
func (l *Life) Pods() []*corev1.Pod { return l.cluster.all() }

// Pod is one of them, nil if there is none.
func (l *Life) Pod(name string) *corev1.Pod { return l.cluster.pod(name) }

// Every is all there is of a type, by name.
func Every[O client.Object](l *Life) []O { return sorted[O](l.cluster.objects) }

// Show lets the cache take the next event of a type, nil for any, and says whether there
// was one.
func (l *Life) Show(of client.Object) bool { return l.cluster.show(context.Background(), of) }

// ShowAll lets the cache catch up with a type, nil for all.
func (l *Life) ShowAll(of client.Object) {
	for l.Show(of) {
	}
}

// Change changes the workload as a user does, and the cache shows it at once.
func (l *Life) Change(edit func(client.Object)) {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	now := c.workload.DeepCopyObject().(client.Object)
	edit(now)
	now.SetGeneration(now.GetGeneration() + 1)
	l.do(c.server.Update(ctx, now))
	l.do(c.commit(ctx, now, false))
	l.ShowAll(c.workload)
}

// Orphan deletes the workload as kubectl delete --cascade=orphan does, and creates it again: its
// pods, revisions and claims lose their owner. The cache shows the new workload at once, and the
// rest later.
func (l *Life) Orphan() {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	old := c.workload
	c.objects.each(func(o client.Object) {
		refs := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return ref.UID == old.GetUID() })
		if len(refs) == len(o.GetOwnerReferences()) {
			return
		}
		o = o.DeepCopyObject().(client.Object)
		o.SetOwnerReferences(refs)
		l.do(c.server.Update(ctx, o))
		l.do(c.commit(ctx, o, false))
	})
	now := old.DeepCopyObject().(client.Object)
	l.do(c.server.Delete(ctx, old.DeepCopyObject().(client.Object)))
	reflect.ValueOf(c.typ.Status(now)).Elem().SetZero()
	now.SetUID("")
	now.SetGeneration(1)
	l.do(c.put(ctx, now))
	l.do(c.commit(ctx, now, false))
	l.ShowAll(now)
}

// Update changes a pod as a user does. The cache does not show it yet.
func (l *Life) Update(p *corev1.Pod) {
	l.Helper()
	l.do(client.IgnoreNotFound(l.cluster.server.Update(context.Background(), p)))
	l.do(l.cluster.commit(context.Background(), p, false))
}

// UpdateStatus changes the status of a pod as a kubelet does. The cache does not show it
// yet.
func (l *Life) UpdateStatus(p *corev1.Pod) {
	l.Helper()
	l.do(l.cluster.server.Status().Update(context.Background(), p))
	l.do(l.cluster.commit(context.Background(), p, false))
}

// SetNode adds or changes a node; the cache shows it at once. Only kinds that read nodes see
// it.
func (l *Life) SetNode(n *corev1.Node) {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	n = n.DeepCopy()
	if c.objects.get(n) == nil {
		l.do(c.put(ctx, n))
		c.nodes = append(c.nodes, n)
	} else {
		status := n.Status.DeepCopy()
		l.do(c.server.Update(ctx, n))
		n.Status = *status
		l.do(c.server.Status().Update(ctx, n))
	}
	l.do(c.commit(ctx, n, false))
	l.ShowAll(n)
}

// DropNode removes a node. Its pods stay until the garbage collector deletes them.
func (l *Life) DropNode(name string) {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	l.do(c.server.Delete(ctx, n))
	c.nodes = slices.DeleteFunc(slices.Clone(c.nodes), func(o *corev1.Node) bool { return o.Name == name })
	l.do(c.commit(ctx, n, true))
	l.ShowAll(n)
}

// Put adds an object of others; the cache shows it at once.
func (l *Life) Put(o client.Object) {
	l.Helper()
	o = o.DeepCopyObject().(client.Object)
	l.do(l.cluster.put(context.Background(), o))
	l.do(l.cluster.commit(context.Background(), o, false))
	l.ShowAll(o)
}

// Fail has a pod end with an error.
func (l *Life) Fail(p *corev1.Pod) {
	l.Helper()
	p = p.DeepCopy()
	p.Status.Phase = corev1.PodFailed
	l.UpdateStatus(p)
}

// SetReady has the first container of a pod, and with it the pod, become ready or not.
func (l *Life) SetReady(p *corev1.Pod, ready bool) {
	l.Helper()
	p = p.DeepCopy()
	p.Status.ContainerStatuses[0].Ready = ready
	l.machines.ready(p)
	l.UpdateStatus(p)
}

// Delete deletes a pod as kubectl delete and a drain do: it terminates until its kubelet
// has stopped it.
func (l *Life) Delete(p *corev1.Pod) {
	l.Helper()
	l.do(client.IgnoreNotFound(l.cluster.server.Delete(context.Background(), p.DeepCopy())))
	l.do(l.cluster.commit(context.Background(), p, false))
	l.ShowAll(p)
}

// DropClaim removes a claim, as kubectl delete does for one whose pods are on no node.
func (l *Life) DropClaim(c *corev1.PersistentVolumeClaim) {
	l.Helper()
	l.do(l.cluster.server.Delete(context.Background(), c.DeepCopy()))
	l.letGo(c, inUse)
	l.do(l.cluster.commit(context.Background(), c, true))
	l.ShowAll(c)
}

// Vanish has the cache show the end of a pod that only terminates.
func (l *Life) Vanish(p *corev1.Pod) {
	l.Helper()
	l.do(l.cluster.server.Delete(context.Background(), p.DeepCopy()))
	l.cluster.take(context.Background(), p, nil)
}

// Step does the next thing for a pod, for its node and the scheduler, and says whether there
// was any.
func (l *Life) Step(name string) bool {
	l.Helper()
	was := l.Pod(name)
	if was == nil {
		return false
	}
	p := was.DeepCopy()
	switch {
	case p.DeletionTimestamp != nil:
		return l.letGo(p, stopping)
	case p.Spec.NodeName == "":
		l.machines.schedule(p)
	default:
		l.machines.run(p)
	}
	return l.updates(was, p)
}

// Answer lets a pod go on where a lifecycle hook holds it, as the operator does whose hook
// it is, and says whether it did.
func (l *Life) Answer(name string) bool {
	l.Helper()
	was := l.Pod(name)
	if was == nil || was.DeletionTimestamp != nil {
		return false
	}
	p := was.DeepCopy()
	l.machines.answer(p)
	return l.updates(was, p)
}

func (l *Life) updates(was, p *corev1.Pod) bool {
	l.Helper()
	if equality.Semantic.DeepEqual(was, p) {
		return false
	}
	l.do(l.cluster.update(context.Background(), was, p))
	return true
}

// letGo takes a finalizer off, if it is there.
func (l *Life) letGo(o client.Object, finalizer string) bool {
	l.Helper()
	for _, f := range o.GetFinalizers() {
		if f == finalizer {
			l.do(l.cluster.letGo(context.Background(), o, finalizer))
			l.do(l.cluster.commit(context.Background(), o, false))
			return true
		}
	}
	return false
}

// Claims lets claims go that no pod uses, collects those whose pods are gone, and says
// whether there were any.
func (l *Life) Claims() bool {
	l.Helper()
	used, pods := map[string]bool{}, map[types.UID]bool{}
	for _, p := range l.Pods() {
		pods[p.UID] = true
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				used[v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	did := false
	for _, c := range Every[*corev1.PersistentVolumeClaim](l) {
		orphaned := len(c.OwnerReferences) > 0 && !slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind != "Pod" || pods[r.UID]
		})
		switch {
		case used[c.Name]:
		case c.DeletionTimestamp != nil:
			did = l.letGo(c, inUse) || did
		case orphaned:
			l.do(l.cluster.server.Delete(context.Background(), c.DeepCopy()))
			l.do(l.cluster.commit(context.Background(), c, false))
			did = true
		}
	}
	return did
}
