// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/versions"
)

// Events of pods.
const (
	// Component is the name of the agent in events of pods.
	Component = "kruise-daemon-podprobe"
	// SucceededReason is the reason of an event about a probe that succeeded.
	SucceededReason = "KruiseProbeSucceeded"
	// FailedReason is the reason of an event about a probe that failed.
	FailedReason = "KruiseProbeFailed"
)

// Reconcile starts and ends probes as the NodePodProbe says, and writes their results.
func (a *Agent) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := &v1alpha1.NodePodProbe{}
	err := a.client.Get(ctx, req.NamespacedName, o)
	if apierrors.IsNotFound(err) || err == nil && o.DeletionTimestamp != nil {
		a.syncWorkers(&v1alpha1.NodePodProbe{})
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading NodePodProbe %s: %w", req.Name, err)
	}
	o = a.newestNodePodProbe(o)
	a.syncWorkers(o)
	changed := o.DeepCopy()
	changed.Status.PodProbeStatuses = a.collectResults(o)
	kstatus.SetConditions(&changed.Status, summarizeProbes(o, &changed.Status), 0, a.now()) // no write for a spec whose results are the same
	if equality.Semantic.DeepEqual(o.Status, changed.Status) {
		a.unsummed = time.Time{}
		return reconcile.Result{}, nil
	}
	if left := a.untilWrite(o, changed); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	before := o.DeepCopy()
	if err := a.client.Status().Patch(ctx, changed, client.MergeFrom(o)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("writing the status of NodePodProbe %s: %w", req.Name, err))
	}
	a.last, a.written, a.unsummed = changed, a.now(), time.Time{}
	a.emitResultEvents(before, changed)
	return reconcile.Result{}, nil
}

// untilWrite returns how long the write of a status waits: for a pause since the last one, and, if only the conditions are news, for a pause
// since they are. Most probes of a pod that is added have a result by then, so that the conditions neither cost a write nor delay the result.
func (a *Agent) untilWrite(o, changed *v1alpha1.NodePodProbe) time.Duration {
	now := a.now()
	left := a.written.Add(pause).Sub(now)
	if !equality.Semantic.DeepEqual(o.Status.PodProbeStatuses, changed.Status.PodProbeStatuses) {
		return left
	}
	if a.unsummed.IsZero() {
		a.unsummed = now
	}
	return max(left, a.unsummed.Add(pause).Sub(now))
}

// summarizeProbes returns what the conditions of package kstatus say: whether each pod that is to be probed has a result, whatever that is.
func summarizeProbes(o *v1alpha1.NodePodProbe, s *v1alpha1.NodePodProbeStatus) kstatus.Summary {
	text := fmt.Sprintf("%d of %d pods have results of probes", len(s.PodProbeStatuses), len(o.Spec.PodProbes))
	if len(s.PodProbeStatuses) < len(o.Spec.PodProbes) {
		return kstatus.NewReconciling(kruise.ProgressingReason, text)
	}
	return kstatus.NewReady(v1alpha1.ProbesStartedReason, text)
}

// newestNodePodProbe returns the NodePodProbe as the cache has it, or as it was written last, so that
// no result is written or reported twice.
func (a *Agent) newestNodePodProbe(cached *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
	if a.last != nil && versions.IsNewer(a.last, cached) {
		return a.last
	}
	a.last = nil
	return cached
}

// syncWorkers starts the probes that are wanted, and ends those that are not wanted any more. A probe
// with a reported state continues from it.
func (a *Agent) syncWorkers(o *v1alpha1.NodePodProbe) {
	a.mu.Lock()
	defer a.mu.Unlock()
	wanted := map[key]bool{}
	for i := range o.Spec.PodProbes {
		pod := &o.Spec.PodProbes[i]
		for j := range pod.Probes {
			k := key{pod.UID, pod.Probes[j].Name}
			wanted[k] = true
			w := newWorker(a, o.Name, pod, &pod.Probes[j])
			old := a.workers[k]
			switch {
			case old != nil && old.isSameProbe(w):
				continue
			case old != nil:
				old.cancel()
				w.record = old.record
			default:
				w.record = recordedState(o, k)
				w.resumed = w.record != nil && !a.begun
			}
			a.workers[k] = w
			w.startProbing(a.ctx)
		}
	}
	a.begun = a.begun || o.Name != ""
	for k, w := range a.workers {
		if !wanted[k] {
			w.cancel()
			delete(a.workers, k)
		}
	}
}

// recordedState is the state of a probe in the status.
func recordedState(o *v1alpha1.NodePodProbe, k key) *v1alpha1.ContainerProbeState {
	for i := range o.Status.PodProbeStatuses {
		if o.Status.PodProbeStatuses[i].UID == k.uid {
			return stateOf(&o.Status.PodProbeStatuses[i], k.name)
		}
	}
	return nil
}

func stateOf(pod *v1alpha1.PodProbeStatus, name string) *v1alpha1.ContainerProbeState {
	for i := range pod.ProbeStates {
		if s := &pod.ProbeStates[i]; s.Name == name && s.State != "" {
			return s.DeepCopy()
		}
	}
	return nil
}

// collectResults returns the results of the probes in the spec, in the order of the spec.
func (a *Agent) collectResults(o *v1alpha1.NodePodProbe) []v1alpha1.PodProbeStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []v1alpha1.PodProbeStatus
	for i := range o.Spec.PodProbes {
		pod := &o.Spec.PodProbes[i]
		status := v1alpha1.PodProbeStatus{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID}
		for j := range pod.Probes {
			if w := a.workers[key{pod.UID, pod.Probes[j].Name}]; w != nil && w.record != nil {
				status.ProbeStates = append(status.ProbeStates, *w.record.DeepCopy())
			}
		}
		if len(status.ProbeStates) > 0 {
			out = append(out, status)
		}
	}
	return out
}

// emitResultEvents records an event for each probe whose result has changed.
func (a *Agent) emitResultEvents(before, now *v1alpha1.NodePodProbe) {
	for i := range now.Status.PodProbeStatuses {
		status := &now.Status.PodProbeStatuses[i]
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: status.Namespace, Name: status.Name, UID: types.UID(status.UID)},
		}
		for j := range status.ProbeStates {
			s := &status.ProbeStates[j]
			if old := recordedState(before, key{status.UID, s.Name}); old != nil && old.State == s.State {
				continue
			}
			switch s.State {
			case v1alpha1.ProbeSucceeded:
				a.events.Eventf(pod, corev1.EventTypeNormal, SucceededReason, "Probe %s succeeded: %s", s.Name, s.Message)
			case v1alpha1.ProbeFailed:
				a.events.Eventf(pod, corev1.EventTypeNormal, FailedReason, "Probe %s failed: %s", s.Name, s.Message)
			}
		}
	}
}
