// SPDX-License-Identifier: Apache-2.0

package containermeta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/stop"
)

const (
	// stoppingMessage is of an event; it takes the ID of the container.
	stoppingMessage = "Stopping containerID %s by container meta restarter"
	// GivenUpReason is of an event of a container whose env stays another one than the pod
	// asks for.
	GivenUpReason = "EnvNotRefreshed"
	// mostStops is how many runs of a container are ended for the same env. The kubelet may
	// start one by what it knew a moment before; more would go on for ever.
	mostStops = 3
	// kubeletPatience is how long after its grace a container may run on that the kubelet is
	// to restart itself.
	kubeletPatience = 30 * time.Second
	// defaultGrace is that of Kubernetes, in seconds.
	defaultGrace = 30
)

// history is which runs were ended, by the container.
type history map[string]ended

// ended is the run that was ended last, for which env, and how many were for that.
type ended struct {
	id    string
	env   uint64
	times int
}

// due is a container whose run is to end.
type due struct {
	name string
	id   string
	env  uint64 // the hash that the next run is to have
}

// restart is PL-06: it ends the runs of a pod whose env is not that of the pod's labels and
// annotations, and waits for them to end.
func (a *Agent) restart(ctx context.Context, pod *corev1.Pod, set kruise.RuntimeContainerMetaSet) (reconcile.Result, error) {
	all, wait := outdated(pod, set, a.now())
	all = slices.DeleteFunc(all, func(d due) bool { return !a.may(pod, d) })
	if len(all) == 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	all, err := a.stands(ctx, pod, set, all)
	if err != nil {
		return reconcile.Result{}, err
	}
	runtime, runs, err := a.look(ctx, pod)
	if err != nil || runtime == nil {
		return reconcile.Result{}, err
	}
	failed := make([]error, len(all))
	var group sync.WaitGroup
	for i, d := range all {
		run := runs[d.name]
		if run.ID != d.id || !run.Running {
			continue // it has ended already
		}
		group.Go(func() { failed[i] = a.stop(ctx, pod, d, runtime, run) })
	}
	group.Wait()
	return reconcile.Result{RequeueAfter: wait}, errors.Join(failed...)
}

// outdated are the containers that run with another env than they are to have, and when to
// look again at those that are left to the kubelet: it restarts a container whose image
// changes too, with all hooks, and both at once would cut them short.
func outdated(pod *corev1.Pod, set kruise.RuntimeContainerMetaSet, now time.Time) (all []due, wait time.Duration) {
	for _, name := range inplace.Refreshing(pod) {
		c, st := containerOf(pod, name), statusOf(pod, name)
		e, ok := entry(set, name)
		if !ok || st == nil || st.State.Running == nil || st.ContainerID != e.ContainerID {
			continue
		}
		d := due{name, e.ContainerID, runtimemeta.Expected(pod, c)}
		if actual := e.Hashes.ExtractedEnvFromMetadataHash; actual == 0 || actual == d.env {
			continue
		}
		if !slices.Contains(runtimemeta.PlainHashes(c), e.Hashes.PlainHash) {
			if left := kubeletsTurn(pod, name).Sub(now); left > 0 {
				wait = max(wait, left)
				continue
			}
		}
		all = append(all, d)
	}
	return all, wait
}

// kubeletsTurn is until when a container whose image changes is left to the kubelet.
func kubeletsTurn(pod *corev1.Pod, name string) time.Time {
	return inplace.ChangedAt(pod, name).Add(grace(pod) + kubeletPatience)
}

func grace(pod *corev1.Pod) time.Duration {
	return time.Duration(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, defaultGrace)) * time.Second
}

// may says whether a run may be ended: not a second time, and not one after the other for
// an env that the container never gets.
func (a *Agent) may(pod *corev1.Pod, d due) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.stopped[client.ObjectKeyFromObject(pod)][key(pod, d)]
	return last.id != d.id && (last.env != d.env || last.times < mostStops)
}

// key is of a container of the very pod: another one may get its name.
func key(pod *corev1.Pod, d due) string { return string(pod.UID) + "/" + d.name }

// stands are the containers that are still to be restarted by what the API server has now:
// the cache may be late, and a stop cannot be undone.
func (a *Agent) stands(ctx context.Context, pod *corev1.Pod, set kruise.RuntimeContainerMetaSet, all []due) ([]due, error) {
	now := &corev1.Pod{}
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(pod), now); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if now.UID != pod.UID || now.DeletionTimestamp != nil {
		return nil, nil
	}
	still, _ := outdated(now, set, a.now())
	return slices.DeleteFunc(all, func(d due) bool { return !slices.Contains(still, d) }), nil
}

// stop ends one run.
func (a *Agent) stop(ctx context.Context, pod *corev1.Pod, d due, runtime *cri.Runtime, run cri.Container) error {
	a.events.Eventf(pod, corev1.EventTypeNormal, kruise.KillingContainerReason, stoppingMessage, d.id)
	c := containerOf(pod, d.name)
	target := stop.Target{Runtime: runtime, Run: run, Ports: c.Ports}
	if c.Lifecycle != nil {
		target.Hook = c.Lifecycle.PreStop
	}
	err := a.stopper.Stop(ctx, target, grace(pod), func(err error) {
		a.events.Eventf(pod, corev1.EventTypeWarning, kruise.FailedPreStopHookReason, "preStop of container %s failed: %v", d.name, err)
	})
	if err != nil {
		return fmt.Errorf("restarting container %s of pod %s for its env: %w", d.name, client.ObjectKeyFromObject(pod), err)
	}
	if a.remember(pod, d) == mostStops {
		ctrl.LoggerFrom(ctx).Info("a container does not get the env that its pod asks for", "container", d.name)
		a.events.Eventf(pod, corev1.EventTypeWarning, GivenUpReason, "Container %s was restarted %d times for the labels and annotations that its env reads, and is not restarted for them again", d.name, mostStops)
	}
	return nil
}

// remember notes that a run was ended, and returns how many were for the same env.
func (a *Agent) remember(pod *corev1.Pod, d due) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := client.ObjectKeyFromObject(pod)
	if a.stopped[at] == nil {
		a.stopped[at] = history{}
	}
	last := a.stopped[at][key(pod, d)]
	if last.env != d.env {
		last.times = 0
	}
	last = ended{d.id, d.env, last.times + 1}
	a.stopped[at][key(pod, d)] = last
	return last.times
}

func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	return &corev1.Container{} // what is to be refreshed is in the spec
}

func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}
