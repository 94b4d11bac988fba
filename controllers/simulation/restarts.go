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

// WithEveryAgent has each node have a node agent, for Life.Options.
func WithEveryAgent() rollout.Option {
	return rollout.WithAgents(func(context.Context, string) (bool, time.Duration, error) { return true, 0, nil })
}

// AskRestart has a user ask to restart the pods in place.
func (l *Life) AskRestart() {
	l.Helper()
	l.Change(func(o client.Object) {
		all := maps.Clone(o.GetAnnotations())
		if all == nil {
			all = map[string]string{}
		}
		all[kruise.RestartInPlaceKey] = l.Now.UTC().Format(time.RFC3339)
		o.SetAnnotations(all)
	})
}

// EndRestart has a user take back what cannot be done: a restart in place where no pod may be unavailable.
func (l *Life) EndRestart() {
	l.Helper()
	if l.cluster.spec().Strategy.MaxUnavailable > 0 {
		return
	}
	l.Change(func(o client.Object) {
		all := maps.Clone(o.GetAnnotations())
		delete(all, kruise.RestartInPlaceKey)
		o.SetAnnotations(all)
	})
}

// MustHaveRestarted fails if a restart in place has not come to its end.
func (l *Life) MustHaveRestarted() {
	l.Helper()
	if asked := l.cluster.workload.GetAnnotations()[kruise.RestartInPlaceKey]; asked != "" {
		l.Fatalf("in the end the restart that was asked for at %s is not done%s", asked, l.Story())
	}
}

// RestartContainers takes each ContainerRecreateRequest a step on, as a manager and the node agents do: first the containers are
// down, and once the pod is ready again the request is complete. It says whether there was anything to do.
func (l *Life) RestartContainers() (did bool) {
	l.Helper()
	c, ctx := l.cluster, context.Background()
	for _, was := range Every[*kruise.ContainerRecreateRequest](l) {
		o, pod := was.DeepCopy(), l.Pod(was.Spec.PodName)
		switch {
		case pod == nil: // the garbage collector
			l.do(client.IgnoreNotFound(c.server.Delete(ctx, o)))
			l.do(c.commit(ctx, o, true))
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
			l.machines.ready(down)
			l.updates(pod, down)
			o.Status.Phase = kruise.ContainerRecreateRequestRecreating
		case slices.ContainsFunc(pod.Status.ContainerStatuses, func(st corev1.ContainerStatus) bool { return !st.Ready }):
			continue
		default:
			o.Status.Phase, o.Status.CompletionTime = kruise.ContainerRecreateRequestCompleted, &metav1.Time{Time: l.Now}
		}
		l.do(c.server.Update(ctx, o))
		l.do(c.commit(ctx, o, false))
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
	for _, o := range sorted[*kruise.ContainerRecreateRequest](c.objects) {
		if asked.LabelSelector != nil && asked.LabelSelector.Matches(labels.Set(o.Labels)) {
			if err := client.IgnoreNotFound(c.delete(ctx, server, o.DeepCopy())); err != nil {
				return err
			}
		}
	}
	return nil
}

// restartBroken says what a request to restart a pod breaks, "" if nothing: a hold of its pod, or maxUnavailable together with the
// pods that are unavailable or restart already.
func (l *Life) restartBroken(o *kruise.ContainerRecreateRequest) string {
	c := l.cluster
	pod := l.Pod(o.Spec.PodName)
	if pod == nil {
		return ""
	}
	seen, _ := c.cache.get(pod).(*corev1.Pod)
	if holding := HoldingOf(c.workload); seen != nil && holding.Pod(pod.Name, l.holds.zone(seen)) {
		return fmt.Sprintf("restarts pod %s, which is held by %v", pod.Name, holding)
	}
	spec := c.spec()
	if c.typ.NodeOf != nil { // what it may is by node
		return ""
	}
	left := c.look().Available
	for _, p := range c.all() {
		if l.isRestarting(p) && p.DeletionTimestamp == nil && l.isAvailable(p) {
			left--
		}
	}
	if least := spec.Replicas - spec.Strategy.MaxUnavailable; left < least && l.isAvailable(pod) {
		return fmt.Sprintf("restarts pod %s and leaves %d pods that are available and do not restart, there must be %d", pod.Name, left, least)
	}
	return ""
}

// isAvailable says whether a pod counts as available.
func (l *Life) isAvailable(p *corev1.Pod) bool {
	c := l.cluster
	return c.witness.Look(c.workload, []*corev1.Pod{p}, nil, l.Now).Available > 0
}

// isRestarting says whether a request to restart a pod is not complete.
func (l *Life) isRestarting(p *corev1.Pod) bool {
	return slices.ContainsFunc(Every[*kruise.ContainerRecreateRequest](l), func(o *kruise.ContainerRecreateRequest) bool {
		return o.Spec.PodName == p.Name && o.Status.CompletionTime == nil && slices.ContainsFunc(o.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == p.UID })
	})
}
