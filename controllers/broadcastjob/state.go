// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// state is what one reconcile knows of a job.
type state struct {
	job *kruise.BroadcastJob
	now time.Time
	// active, succeeded and failed are the pods, by what they count as (BJ-02).
	active, succeeded, failed []*corev1.Pod
	// nodes are the nodes that the job covers, by name, with their states (BJ-03).
	nodes  []placement.Node
	counts placement.Counts
	// unfit are active pods to be deleted: their node does not fit any more, is gone, or has
	// an older pod of the job.
	unfit []*corev1.Pod
	// terminating are the pods that the job waits for: their nodes get no other pod before these are gone.
	terminating []*corev1.Pod
	// duplicated are the nodes with more than one active pod.
	duplicated []string
	// parallelism is how many pods may be active.
	parallelism int
}

// totalRestarts is the number of restarts of all containers of a pod.
func totalRestarts(pod *corev1.Pod) (sum int32) {
	for _, s := range pod.Status.InitContainerStatuses {
		sum += s.RestartCount
	}
	for _, s := range pod.Status.ContainerStatuses {
		sum += s.RestartCount
	}
	return sum
}

// counts is BJ-02: what a pod counts as, empty for one that counts for nothing.
func countsAs(pod *corev1.Pod, job *kruise.BroadcastJob) string {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return placement.Succeeded
	case pod.Status.Phase == corev1.PodFailed && !endedByDeletion(pod):
		return placement.Failed
	case pod.DeletionTimestamp != nil:
		return ""
	case pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && totalRestarts(pod) > job.Spec.FailurePolicy.RestartLimit:
		return placement.Failed
	}
	return placement.Active
}

// endedByDeletion reports whether the containers of a pod ended no earlier than its deletion was asked for, as
// those of a drained node do. Such an end says nothing about the work of the pod. A pod none of whose
// containers ended by itself failed for another reason, such as an eviction by the kubelet.
func endedByDeletion(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	requested := pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second).Truncate(time.Second)
	last := time.Time{}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if ended := s.State.Terminated; ended != nil && ended.ExitCode != 0 {
			if ended.FinishedAt.Time.Before(requested) {
				return false
			}
			last = ended.FinishedAt.Time
		}
	}
	return !last.IsZero()
}

// loadState makes the state of a job. current is false while the cache does not show the controller's
// own writes.
func (r *Reconciler) loadState(ctx context.Context, job *kruise.BroadcastJob, m *memory) (s *state, current bool, err error) {
	pods, current, err := r.listPods(ctx, job, m)
	if err != nil || !current {
		return nil, false, err
	}
	nodes := &corev1.NodeList{}
	if err := r.Client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, fmt.Errorf("listing nodes: %w", err)
	}
	slices.SortFunc(nodes.Items, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	fit, err := nodefit.NewRequirements(&job.Spec.Template.Spec, nodefit.WithRequests())
	if err != nil {
		return nil, false, err
	}
	s = &state{job: job, now: r.Now()}
	on := map[string][]*corev1.Pod{}
	for _, pod := range pods {
		switch countsAs(pod, job) {
		case placement.Active:
			s.active = append(s.active, pod)
		case placement.Succeeded:
			s.succeeded = append(s.succeeded, pod)
		case placement.Failed:
			s.failed = append(s.failed, pod)
		}
		node := nodefit.NodeOf(pod)
		on[node] = append(on[node], pod)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		s.addNode(node, on[node.Name], fit.EvaluateNode(node))
		delete(on, node.Name)
	}
	if err := r.addOrphanedPods(ctx, s, on); err != nil {
		return nil, false, err
	}
	s.parallelism = math.MaxInt32
	if p := job.Spec.Parallelism; p != nil {
		if s.parallelism, err = budget.ResolvePercent(*p, len(s.nodes), true); err != nil {
			return nil, false, fmt.Errorf("reading spec.parallelism: %w", err)
		}
	}
	return s, true, nil
}

// addNode is BJ-03 for one node. The job still covers a node whose pod has ended, so a taint that comes
// and goes later does not make the pod run again. A pod that runs on a node continues while the node is
// cordoned, not ready or under pressure: the control plane evicts pods from nodes.
func (s *state) addNode(node *corev1.Node, pods []*corev1.Pod, verdict nodefit.Verdict) {
	fits := verdict.Start && node.DeletionTimestamp == nil
	state, running := placement.Waiting, []*corev1.Pod(nil)
	var terminating []*corev1.Pod
	for _, pod := range pods {
		switch counts := countsAs(pod, s.job); counts {
		case placement.Active:
			running = append(running, pod)
		case placement.Succeeded, placement.Failed:
			if state != placement.Succeeded {
				state = counts
			}
		case "": // it comes again when it is gone
			terminating = append(terminating, pod)
			if state == placement.Waiting {
				state = placement.Active
			}
		}
	}
	slices.SortFunc(running, compareAge)
	if !fits && len(running) > 0 {
		if running = s.takeUnfit(running, verdict); len(running) == 0 {
			return
		}
	}
	if len(running) > 1 {
		s.duplicated = append(s.duplicated, node.Name)
		s.unfit = append(s.unfit, running[1:]...)
	}
	if len(running) > 0 {
		state = placement.Active
	}
	ended := state == placement.Succeeded || state == placement.Failed
	if !fits && !ended && len(running) == 0 {
		return
	}
	if !ended && len(running) == 0 {
		s.terminating = append(s.terminating, terminating...)
	}
	s.nodes = append(s.nodes, placement.Node{Name: node.Name, State: state, Labels: node.Labels, Conditions: nodefit.NodeConditions(node)})
	s.countNode(state)
}

// takeUnfit marks as unfit the pods that may not continue on a node that does not fit any more, and returns the
// others.
func (s *state) takeUnfit(running []*corev1.Pod, verdict nodefit.Verdict) []*corev1.Pod {
	stay := verdict.Start || verdict.Stay || verdict.Reason == nodefit.Tainted
	return slices.DeleteFunc(running, func(p *corev1.Pod) bool {
		if stay && p.Spec.NodeName != "" {
			return false
		}
		s.unfit = append(s.unfit, p)
		return true
	})
}

// countNode counts a node that the job covers.
func (s *state) countNode(state string) {
	s.counts.Desired++
	switch state {
	case placement.Waiting:
		s.counts.Waiting++
	case placement.Active:
		s.counts.Active++
	case placement.Succeeded:
		s.counts.Succeeded++
	case placement.Failed:
		s.counts.Failed++
	}
}

// compareAge is the order of pods of one node: the first is kept.
func compareAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// addOrphanedPods adds the active pods that wait for a node that is gone. The control plane deletes
// the pods that ran there.
func (r *Reconciler) addOrphanedPods(ctx context.Context, s *state, on map[string][]*corev1.Pod) error {
	for name, pods := range on {
		var waiting []*corev1.Pod
		for _, pod := range pods {
			if pod.Spec.NodeName == "" && countsAs(pod, s.job) == placement.Active {
				waiting = append(waiting, pod)
			}
		}
		if name == "" || len(waiting) == 0 {
			continue
		}
		// A node that is missing in the cache may exist all the same.
		node := &metav1.PartialObjectMetadata{}
		node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		switch err := r.Live.Get(ctx, client.ObjectKey{Name: name}, node); {
		case apierrors.IsNotFound(err):
			s.unfit = append(s.unfit, waiting...)
		case err != nil:
			return fmt.Errorf("reading node %s: %w", name, err)
		}
	}
	return nil
}

// listPods returns the pods of the job as the cache shows them, with the controller's own later
// writes. The first time the pods are read from the API server too: an earlier process may have made
// writes that the cache does not show yet.
func (r *Reconciler) listPods(ctx context.Context, job *kruise.BroadcastJob, m *memory) ([]*corev1.Pod, bool, error) {
	if !m.listed && job.Status.StartTime != nil {
		list := &corev1.PodList{}
		if err := r.Live.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabels{kruise.BroadcastJobControllerUIDKey: string(job.UID)}); err != nil {
			return nil, false, fmt.Errorf("listing pods past the cache: %w", err)
		}
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], job) {
				r.overlay.RecordCreated(job.UID, &list.Items[i])
			}
		}
	}
	m.listed = true
	mark := r.overlay.TakeMark()
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{rollout.OwnerIndex: string(job.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, fmt.Errorf("listing pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	pods, late := r.overlay.ApplyWrites(job.UID, mark, pods, r.timeout)
	for _, pod := range late {
		found := &corev1.Pod{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), found)
		switch {
		case apierrors.IsNotFound(err), err == nil && found.UID != pod.UID:
			r.overlay.DropWrite(job.UID, pod.UID)
		case err != nil:
			return nil, false, fmt.Errorf("reading pod %s past the cache: %w", pod.Name, err)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, len(late) == 0, nil
}
