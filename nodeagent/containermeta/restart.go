// SPDX-License-Identifier: Apache-2.0

package containermeta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
	"github.com/regatta-sh/regatta/engine/recovery"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/message"
	"github.com/regatta-sh/regatta/nodeagent/stop"
)

const (
	// stoppingMessage is the format of an event, for the ID of the container.
	stoppingMessage = "Stopping containerID %s by container meta restarter"
	// GivenUpReason is the reason of an event about a container whose env still differs from the pod's
	// spec.
	GivenUpReason = "EnvNotRefreshed"
	// mostStops is how many runs of a container are ended for the same env. The kubelet may start a run
	// from an outdated pod; further stops could continue without end.
	mostStops = 3
	// settling is how long an outdated run is not stopped yet. The kubelet syncs a pod once a second, and
	// starts the next run from the pod that it saw last: a container that is stopped at once could get the
	// old env again, and be restarted a second time.
	settling = 2 * time.Second
	// kubeletPatience is how long after its grace period a container that the kubelet restarts itself may
	// continue to run.
	kubeletPatience = 30 * time.Second
	// defaultGrace is the default grace period of Kubernetes, in seconds.
	defaultGrace = 30
)

// history has the stops of the containers of a pod since this process started.
type history struct {
	ended map[string]ended // by container
	// seen is since when runs are outdated, by the clock of this process: clocks of other machines may be
	// minutes off.
	seen map[due]time.Time
}

// ended is the run that was ended last, for which env, and how many runs were ended for that env.
type ended struct {
	id    string
	env   uint64
	times int
}

// due is a container whose run must be ended.
type due struct {
	name string
	id   string
	env  uint64 // the hash that the next run must have
	// patience is how long to wait before the run is stopped.
	patience time.Duration
}

// restartOutdated is PL-06: it ends the runs of a pod whose env is not that of the pod's labels and
// annotations, and waits for them to end.
func (a *Agent) restartOutdated(ctx context.Context, pod *corev1.Pod, set kruise.RuntimeContainerMetaSet) (reconcile.Result, error) {
	all, wait := a.overdueRuns(pod, slices.DeleteFunc(outdatedContainers(pod, set), func(d due) bool { return !a.mayStop(pod, d) }))
	if len(all) == 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if !a.stops.TryAcquire(pod.Namespace) { // the runtime is not asked for a pod that must wait
		ctrl.LoggerFrom(ctx).Info("containers of a pod wait for others of its namespace on the node to stop")
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	a.stops.Release(pod.Namespace) // each stop acquires its own slot
	all, err := a.confirmOutdated(ctx, pod, set, all)
	if err != nil {
		return reconcile.Result{}, err
	}
	runtime, runs, err := a.findRuns(ctx, pod)
	if err != nil || runtime == nil {
		return reconcile.Result{}, err
	}
	failed := make([]error, len(all))
	var group recovery.WaitGroup
	for i, d := range all {
		run := runs[d.name]
		if run.ID != d.id || !run.Running {
			continue // it has ended already
		}
		if !a.stops.TryAcquire(pod.Namespace) {
			ctrl.LoggerFrom(ctx).Info("a container waits for others of its namespace on the node to stop", "container", d.name)
			wait = lookAgain
			continue
		}
		group.Go("containermeta", func() {
			defer a.stops.Release(pod.Namespace)
			failed[i] = a.stopRun(ctx, pod, d, runtime, run)
		}, func(err error) { failed[i] = err })
	}
	group.Wait()
	return reconcile.Result{RequeueAfter: wait}, errors.Join(failed...)
}

// outdatedContainers returns the containers whose env differs from the pod's spec. A container whose
// image changes too is left to the kubelet for a longer time: the kubelet restarts it with all hooks,
// and a second stop would cut these short.
func outdatedContainers(pod *corev1.Pod, set kruise.RuntimeContainerMetaSet) (all []due) {
	for _, name := range inplace.ContainersToRefresh(pod) {
		c, st := containerOf(pod, name), statusOf(pod, name)
		e, ok := findEntry(set, name)
		if !ok || st == nil || st.State.Running == nil || st.ContainerID != e.ContainerID {
			continue
		}
		d := due{name, e.ContainerID, runtimemeta.ExpectedEnvHash(pod, c), settling}
		if actual := e.Hashes.ExtractedEnvFromMetadataHash; actual == 0 || actual == d.env {
			continue
		}
		if !slices.Contains(runtimemeta.PlainHashes(c), e.Hashes.PlainHash) {
			d.patience = gracePeriod(pod) + kubeletPatience
		}
		all = append(all, d)
	}
	return all
}

// overdueRuns returns the runs whose patience is over, and when that of the next one is. After a
// restart of the agent the time starts over.
func (a *Agent) overdueRuns(pod *corev1.Pod, all []due) (ripe []due, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.historyOf(pod)
	maps.DeleteFunc(h.seen, func(d due, _ time.Time) bool { return !slices.Contains(all, d) })
	for _, d := range all {
		if h.seen[d].IsZero() {
			h.seen[d] = a.now()
		}
		left := d.patience - a.now().Sub(h.seen[d])
		if left <= 0 {
			ripe = append(ripe, d)
		} else if wait == 0 || left < wait {
			wait = left
		}
	}
	return ripe, wait
}

// historyOf returns the history of a pod. The caller holds a.mu.
func (a *Agent) historyOf(pod *corev1.Pod) *history {
	at := client.ObjectKeyFromObject(pod)
	if a.history[at] == nil {
		a.history[at] = &history{ended: map[string]ended{}, seen: map[due]time.Time{}}
	}
	return a.history[at]
}

func gracePeriod(pod *corev1.Pod) time.Duration {
	return time.Duration(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, defaultGrace)) * time.Second
}

// mayStop reports whether a run may be ended: not a second time, and not one after the other for
// an env that the container never gets.
func (a *Agent) mayStop(pod *corev1.Pod, d due) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.historyOf(pod).ended[containerKey(pod, d)]
	return last.id != d.id && (last.env != d.env || last.times < mostStops)
}

// containerKey identifies a container by the UID of its pod, since another pod may get the same name.
func containerKey(pod *corev1.Pod, d due) string { return string(pod.UID) + "/" + d.name }

// confirmOutdated returns the containers that must still be restarted by the current pod in the API
// server: the cache may be late, and a stop cannot be undone.
func (a *Agent) confirmOutdated(ctx context.Context, pod *corev1.Pod, set kruise.RuntimeContainerMetaSet, all []due) ([]due, error) {
	now := &corev1.Pod{}
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(pod), now); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if now.UID != pod.UID || now.DeletionTimestamp != nil {
		return nil, nil
	}
	still := outdatedContainers(now, set)
	return slices.DeleteFunc(all, func(d due) bool { return !slices.Contains(still, d) }), nil
}

// stopRun ends one run.
func (a *Agent) stopRun(ctx context.Context, pod *corev1.Pod, d due, runtime *cri.Runtime, run cri.Container) error {
	a.events.Eventf(pod, corev1.EventTypeNormal, kruise.KillingContainerReason, stoppingMessage, d.id)
	c := containerOf(pod, d.name)
	target := stop.Target{Runtime: runtime, Run: run, Ports: c.Ports}
	if c.Lifecycle != nil {
		target.Hook = c.Lifecycle.PreStop
	}
	err := a.stopper.StopContainer(ctx, target, gracePeriod(pod), func(err error) {
		a.events.Eventf(pod, corev1.EventTypeWarning, kruise.FailedPreStopHookReason, "preStop of container %s failed: %s", d.name, message.ErrorText(err))
	})
	if err != nil {
		return fmt.Errorf("restarting container %s of pod %s for its env: %w", d.name, client.ObjectKeyFromObject(pod), err)
	}
	if a.recordStop(pod, d) == mostStops {
		ctrl.LoggerFrom(ctx).Info("a container does not get the env that its pod asks for", "container", d.name)
		a.events.Eventf(pod, corev1.EventTypeWarning, GivenUpReason, "Container %s was restarted %d times for the labels and annotations that its env reads, and is not restarted for them again", d.name, mostStops)
	}
	return nil
}

// recordStop records that a run was ended, and returns how many were ended for the same env.
func (a *Agent) recordStop(pod *corev1.Pod, d due) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.historyOf(pod)
	last := h.ended[containerKey(pod, d)]
	if last.env != d.env {
		last.times = 0
	}
	last = ended{d.id, d.env, last.times + 1}
	h.ended[containerKey(pod, d)] = last
	return last.times
}

func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	return &corev1.Container{} // not reached: outdated containers are in the spec
}

func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}
