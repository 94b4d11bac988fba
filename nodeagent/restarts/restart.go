// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/message"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
	"github.com/regatta-sh/regatta/nodeagent/stop"
)

// defaultGrace is the default grace period of Kubernetes.
const defaultGrace = 30 * time.Second

// WaitingReason is the reason of an event about a request whose container is not stopped yet, since its namespace has all
// the stops on the node that it may have.
const WaitingReason = "WaitingForOtherStops"

// restartContainer stops one container, and writes the result. It first reads the request from the API
// server: the cache may be late, and a stop cannot be undone.
func (a *Agent) restartContainer(ctx context.Context, s seen, runtime *cri.Runtime, i int) (failed bool, err error) {
	c := &s.request.Spec.Containers[i]
	if !a.stops.TryAcquire(s.request.Namespace) {
		a.events.Eventf(s.request, corev1.EventTypeNormal, WaitingReason, "Container %s waits for other containers of the node to stop", c.Name)
		return false, nil // the next reconcile tries again
	}
	defer a.stops.Release(s.request.Namespace)
	run := s.containers[c.Name]
	current, err := a.isStillPermitted(ctx, s.request, c.Name, run.ID)
	if err != nil || !current {
		return false, err
	}
	pod := podOf(s.request)
	a.events.Eventf(pod, corev1.EventTypeNormal, kruise.KillingContainerReason, kruise.KillingContainerMessage, c.Name, s.request.Name)
	next := state{Name: c.Name, Phase: kruise.ContainerRecreateRequestRecreating, IsKilled: true}
	if err := a.stopContainer(ctx, s.request, c, runtime, run); err != nil {
		if cri.IsUnavailable(err) || ctx.Err() != nil {
			return false, err // the runtime, or this agent, restarts; the same run is stopped later
		}
		next = state{Name: c.Name, Phase: kruise.ContainerRecreateRequestFailed, Message: fmt.Sprintf(kruise.ContainerRecreateRequestKillErrorMessage, message.ErrorText(err))}
	}
	return next.Phase == kruise.ContainerRecreateRequestFailed, a.reportContainer(ctx, s.request, next)
}

// reportContainer writes the state of one container, also if the manager wrote the request while the
// container was being stopped. The write continues when the agent ends, since the container is stopped
// in any case.
func (a *Agent) reportContainer(ctx context.Context, r *kruise.ContainerRecreateRequest, next state) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if isDone(r) {
			return nil // the manager has ended the request meanwhile, with its result
		}
		err := a.patchStatus(ctx, r, func(st *kruise.ContainerRecreateRequestStatus) {
			st.ContainerRecreateStates = replaceState(st.ContainerRecreateStates, next)
		})
		if apierrors.IsConflict(err) {
			now := &kruise.ContainerRecreateRequest{} // decoding keeps what an answer leaves out
			if err := a.live.Get(ctx, client.ObjectKeyFromObject(r), now); err != nil {
				return fmt.Errorf("reading ContainerRecreateRequest %s again: %w", client.ObjectKeyFromObject(r), err)
			}
			now.DeepCopyInto(r)
		}
		return err
	})
}

// isStillPermitted reports whether a request still permits to end that run.
func (a *Agent) isStillPermitted(ctx context.Context, r *kruise.ContainerRecreateRequest, container, run string) (bool, error) {
	now := &kruise.ContainerRecreateRequest{}
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(r), now); err != nil {
		return false, fmt.Errorf("reading ContainerRecreateRequest %s before a container is stopped: %w", client.ObjectKeyFromObject(r), err)
	}
	permits, err := permit.ReadPermits(now)
	if err != nil {
		return false, err
	}
	return now.UID == r.UID && !isDone(now) && now.DeletionTimestamp == nil && permits[container] == run, nil
}

// stopContainer runs the hook, and stops the container with the grace that is left.
func (a *Agent) stopContainer(ctx context.Context, r *kruise.ContainerRecreateRequest, c *kruise.ContainerRecreateRequestContainer, runtime *cri.Runtime, run cri.Container) error {
	grace := defaultGrace
	if s := r.Spec.Strategy; s != nil && s.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*s.TerminationGracePeriodSeconds) * time.Second
	}
	target := stop.Target{Runtime: runtime, Run: run, Ports: c.Ports}
	if hook := c.PreStop; hook != nil {
		target.Hook = &corev1.LifecycleHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet, TCPSocket: hook.TCPSocket, Sleep: hook.Sleep}
	}
	return a.stopper.StopContainer(ctx, target, grace, func(err error) {
		a.events.Eventf(podOf(r), corev1.EventTypeWarning, kruise.FailedPreStopHookReason, "preStop of container %s failed: %s", c.Name, message.ErrorText(err))
	})
}

// podOf returns the pod of a request with the fields that events need.
func podOf(r *kruise.ContainerRecreateRequest) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Spec.PodName, UID: types.UID(r.Labels[kruise.ContainerRecreateRequestPodUIDKey])},
	}
}
