// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// Restarts in place, and the node agents that carry them out.

// WithEveryAgent makes each node have a node agent, for Harness.Options.
func WithEveryAgent() rollout.Option {
	return rollout.WithAgents(func(context.Context, string) (bool, time.Duration, error) { return true, 0, nil })
}

// AskRestart requests a restart of the pods in place, as a user does.
func (l *Harness) AskRestart() {
	l.Helper()
	l.ChangeWorkload(func(o client.Object) {
		all := maps.Clone(o.GetAnnotations())
		if all == nil {
			all = map[string]string{}
		}
		all[kruise.RestartInPlaceKey] = l.Now.UTC().Format(time.RFC3339)
		o.SetAnnotations(all)
	})
}

// EndRestart withdraws, as a user does, a restart in place that is impossible because no pod may be unavailable.
func (l *Harness) EndRestart() {
	l.Helper()
	if l.cluster.workloadSpec().Strategy.MaxUnavailable > 0 {
		return
	}
	l.ChangeWorkload(func(o client.Object) {
		all := maps.Clone(o.GetAnnotations())
		delete(all, kruise.RestartInPlaceKey)
		o.SetAnnotations(all)
	})
}

// MustHaveRestarted fails the test if a restart in place is not complete.
func (l *Harness) MustHaveRestarted() {
	l.Helper()
	if asked := l.cluster.workload.GetAnnotations()[kruise.RestartInPlaceKey]; asked != "" {
		l.Fatalf("in the end the restart that was asked for at %s is not done%s", asked, l.DescribeState())
	}
}

// RestartContainers advances each ContainerRecreateRequest by a step, as a manager and the node agents do. First the containers are
// not ready; when the pod is ready again, the request is complete. It reports whether there was anything to do.
func (l *Harness) RestartContainers() (did bool) {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	for _, was := range ListObjects[*kruise.ContainerRecreateRequest](l) {
		o, pod := was.DeepCopy(), l.FindPod(was.Spec.PodName)
		switch {
		case pod == nil: // the garbage collector deletes the request
			l.requireNoError(client.IgnoreNotFound(c.server.Delete(ctx, o)))
			l.requireNoError(c.commitWrite(ctx, o, true))
			did = true
			continue
		case o.Status.CompletionTime != nil, pod.DeletionTimestamp != nil:
			continue
		case o.Status.Phase == "":
			down := pod.DeepCopy()
			for i := range down.Status.ContainerStatuses {
				st := &down.Status.ContainerStatuses[i]
				st.Ready, st.RestartCount = false, st.RestartCount+1
				st.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(l.Now)}}
			}
			l.machines.setReadyCondition(down)
			l.updateIfChanged(pod, down)
			o.Status.Phase = kruise.ContainerRecreateRequestRecreating
		case slices.ContainsFunc(pod.Status.ContainerStatuses, func(st corev1.ContainerStatus) bool { return !st.Ready }):
			continue
		default:
			o.Status.Phase, o.Status.CompletionTime = kruise.ContainerRecreateRequestCompleted, &metav1.Time{Time: l.Now}
		}
		l.requireNoError(c.server.Update(ctx, o))
		l.requireNoError(c.commitWrite(ctx, o, false))
		did = true
	}
	return did
}

// deleteAllOf deletes the objects of a type that have some labels.
func (c *cluster) deleteAllOf(ctx context.Context, server client.WithWatch, of client.Object, opts ...client.DeleteAllOfOption) error {
	if _, ok := of.(*kruise.ContainerRecreateRequest); !ok {
		return server.DeleteAllOf(ctx, of, opts...)
	}
	var asked client.DeleteAllOfOptions
	asked.ApplyOptions(opts)
	for _, o := range listSorted[*kruise.ContainerRecreateRequest](c.objects) {
		if asked.LabelSelector != nil && asked.LabelSelector.Matches(labels.Set(o.Labels)) {
			if err := client.IgnoreNotFound(c.deleteObject(ctx, server, o.DeepCopy())); err != nil {
				return err
			}
		}
	}
	return nil
}

// restartBroken returns what a request to restart a pod violates, "" for nothing: a hold of the pod, or maxUnavailable together with the
// pods that are unavailable or restarting already.
func (l *Harness) restartBroken(o *kruise.ContainerRecreateRequest) string {
	c := l.cluster
	pod := l.FindPod(o.Spec.PodName)
	if pod == nil {
		return ""
	}
	seen, _ := c.cache.getObject(pod).(*corev1.Pod)
	if holding := HoldingOf(c.workload); seen != nil && holding.HoldsPod(pod.Name, l.holds.podZone(seen)) {
		return fmt.Sprintf("restarts pod %s, which is held by %v", pod.Name, holding)
	}
	spec := c.workloadSpec()
	if c.typ.NodeOf != nil { // limits of such kinds count nodes
		return ""
	}
	left := c.countPods().Available
	for _, p := range c.sortedPods() {
		if l.isRestarting(p) && p.DeletionTimestamp == nil && l.isAvailable(p) {
			left--
		}
	}
	if least := spec.Replicas - spec.Strategy.MaxUnavailable; left < least && l.isAvailable(pod) {
		return fmt.Sprintf("restarts pod %s and leaves %d pods that are available and do not restart, there must be %d", pod.Name, left, least)
	}
	return ""
}

// isAvailable reports whether a pod counts as available.
func (l *Harness) isAvailable(p *corev1.Pod) bool {
	c := l.cluster
	return c.witness.CountPods(c.workload, []*corev1.Pod{p}, nil, l.Now).Available > 0
}

// isRestarting reports whether a request to restart a pod is not complete.
func (l *Harness) isRestarting(p *corev1.Pod) bool {
	return slices.ContainsFunc(ListObjects[*kruise.ContainerRecreateRequest](l), func(o *kruise.ContainerRecreateRequest) bool {
		return o.Spec.PodName == p.Name && o.Status.CompletionTime == nil && slices.ContainsFunc(o.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == p.UID })
	})
}
