// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// OwnerKind is the kind in the owner reference of pods. It is the older version, which is
// what users see on their pods.
func OwnerKind() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("BroadcastJob") }

// The end of a pod's name looks like the suffixes that the API server generates, which spell no words.
const (
	idLength = 5
	letters  = "bcdfghjklmnpqrstvwxz2456789"
)

// podNameSuffix is the end of the name of a node's pod. It is derived from the job and the node, so
// that another attempt to create the pod finds it. It depends on attempt too, since the names of two
// nodes' pods may collide.
func podNameSuffix(job *kruise.BroadcastJob, node string, attempt int) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%s/%d", job.UID, node, attempt) // a hash takes all that is written
	sum := h.Sum64()
	out := make([]byte, idLength)
	for i := range out {
		out[i] = letters[sum%uint64(len(letters))]
		sum /= uint64(len(letters))
	}
	return string(out)
}

// podFor is the pod of a node.
func (r *Reconciler) podFor(job *kruise.BroadcastJob, node string) *corev1.Pod {
	t := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, GenerateName: job.Name + "-", Labels: maps.Clone(t.Labels), Annotations: t.Annotations, Finalizers: t.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, OwnerKind())},
		},
		Spec: t.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[kruise.BroadcastJobNameKey], pod.Labels[kruise.BroadcastJobControllerUIDKey] = job.Name, string(job.UID)
	if r.affinity {
		nodefit.BindToNode(&pod.Spec, node)
	} else {
		pod.Spec.NodeName = node
	}
	return pod
}

// createPods creates the pods of nodes, few at first.
func (r *Reconciler) createPods(ctx context.Context, job *kruise.BroadcastJob, nodes []string) (created int, err error) {
	var done atomic.Int32
	acts := make([]func() error, len(nodes))
	for i, node := range nodes {
		acts[i] = func() error {
			err := r.createOn(ctx, job, node)
			if err == nil {
				done.Add(1)
			}
			return err
		}
	}
	err = batch.SlowStart(r.writes, 1, acts)
	return int(done.Load()), err
}

// createOn creates the pod of one node, unless the pod exists: the response to an earlier attempt may
// have been lost.
func (r *Reconciler) createOn(ctx context.Context, job *kruise.BroadcastJob, node string) error {
	const attempts = 8
	for attempt := range attempts {
		pod := r.podFor(job, node)
		pod.Name = pod.GenerateName + podNameSuffix(job, node, attempt)
		err := r.Client.Create(ctx, pod)
		if err == nil {
			r.overlay.RecordCreated(job.UID, pod)
			r.Events.Eventf(job, corev1.EventTypeNormal, kruise.SuccessfulCreateReason, kruise.BroadcastJobSuccessfulCreateMessage, pod.Name)
			return nil
		}
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // the job goes with its namespace
		}
		if !apierrors.IsAlreadyExists(err) && !reconcile.IsIndeterminate(err) {
			r.Events.Eventf(job, corev1.EventTypeWarning, kruise.FailedCreateReason, kruise.BroadcastJobFailedCreateMessage, err)
			return fmt.Errorf("creating the pod of node %s: %w", node, err)
		}
		found := &corev1.Pod{}
		read := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), found)
		switch {
		case read == nil && metav1.IsControlledBy(found, job) && nodefit.NodeOf(found) == node:
			r.overlay.RecordCreated(job.UID, found)
			return nil
		case read == nil: // another pod has the name
			continue
		case !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("creating the pod of node %s: %w", node, err)
		case !apierrors.IsNotFound(read):
			return fmt.Errorf("reading pod %s: %w", pod.Name, read)
		}
		return &goneError{pod.Name} // it ended in between; tried again in a moment
	}
	return fmt.Errorf("creating the pod of node %s: %d names are taken by other pods", node, attempts)
}

// goneError reports a name that was taken a moment ago, and is free now.
type goneError struct{ pod string }

func (e *goneError) Error() string { return "pod " + e.pod + " has just ended" }

// deleteUnfinishedPods deletes the unfinished pods of a job that has ended. Pods beyond their restart limit count as
// failed, but would continue to run. It returns when to reconcile again, 0 for when something changes.
func (r *Reconciler) deleteUnfinishedPods(ctx context.Context, job *kruise.BroadcastJob) (time.Duration, error) {
	m := r.memory.GetOrCreate(job)
	m.listed = true // a pod that the cache does not show yet comes with an event
	pods, current, err := r.listPods(ctx, job, m)
	if err != nil {
		return 0, err
	}
	again := time.Duration(0)
	if !current {
		again = lookAgain
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	return again, r.deletePods(ctx, job, pods)
}

// deletePods deletes pods, each only if it still has the UID that was read.
func (r *Reconciler) deletePods(ctx context.Context, job *kruise.BroadcastJob, pods []*corev1.Pod) error {
	acts := make([]func() error, len(pods))
	for i, pod := range pods {
		acts[i] = func() error {
			err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
			if err == nil {
				r.Events.Eventf(job, corev1.EventTypeNormal, kruise.SuccessfulDeleteReason, kruise.BroadcastJobSuccessfulDeleteMessage, pod.Name)
			}
			if err := client.IgnoreNotFound(err); err != nil {
				return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
			}
			r.overlay.RecordDeleted(job.UID, pod)
			return nil
		}
	}
	return batch.RunParallel(r.writes, acts)
}

// syncPods deletes the pods that are unfit, and creates the pods of the next nodes.
func (r *Reconciler) syncPods(ctx context.Context, s *state, next *change, m *memory, d decided) (time.Duration, error) {
	for _, node := range s.duplicated {
		m.recorded.RecordOnce(r.Events, s.job, corev1.EventTypeWarning, kruise.DuplicatePodCreatedReason, fmt.Sprintf("Node %s has more than one pod of the job; the older one is kept.", node))
	}
	if err := r.deletePods(ctx, s.job, s.unfit); err != nil {
		return 0, err
	}
	next.status.Active -= int32(len(s.unfit)) //nolint:gosec // as many as there are pods
	active := len(s.active) - len(s.unfit)
	if active > s.parallelism {
		m.recorded.RecordOnce(r.Events, s.job, corev1.EventTypeWarning, kruise.TooManyActivePodsReason, fmt.Sprintf("Number of active pods (%d) exceeds parallelism limit (%d)", active, s.parallelism))
	}
	created, err := r.createPods(ctx, s.job, d.next)
	next.status.Active += int32(created) //nolint:gosec // as many as there are nodes
	if gone := (*goneError)(nil); errors.As(err, &gone) {
		return requeue.Soon, nil
	}
	return d.again, err
}
