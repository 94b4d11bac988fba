// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/message"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
)

const (
	// lookAgain is how soon containers are checked again, since no event reports their changes.
	lookAgain = 3 * time.Second
	// mostAbsence is how long a request is kept while no container runtime answers.
	mostAbsence = time.Minute
)

// Reconcile works on the requests of one pod.
func (a *Agent) Reconcile(ctx context.Context, pod reconcile.Request) (reconcile.Result, error) {
	all, err := a.listRequests(ctx, pod.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	work, waiting := pickRequest(all)
	if work == nil { // then no request waits
		a.clearAbsence(pod.NamespacedName)
		return reconcile.Result{}, nil
	}
	var failed error // errors of waiting requests, which do not block the other
	for _, r := range waiting {
		err := a.patchStatus(ctx, r, func(s *kruise.ContainerRecreateRequestStatus) { s.Phase = kruise.ContainerRecreateRequestPending })
		failed = errors.Join(failed, client.IgnoreNotFound(err))
	}
	after, err := a.reconcileRequest(ctx, work)
	if err != nil {
		after = 0 // an error is retried after a backoff, not after the usual time
	}
	return requeue.ReconcileResult(ctx, work, after, errors.Join(failed, err))
}

// reconcileRequest does one step for a request, and returns when to reconcile again.
func (a *Agent) reconcileRequest(ctx context.Context, r *kruise.ContainerRecreateRequest) (time.Duration, error) {
	if !isGraceStarted(r) {
		if r.Status.Phase != kruise.ContainerRecreateRequestRecreating {
			return 0, a.patchStatus(ctx, r, setRecreating)
		}
		return 0, nil
	}
	s, runtime, why, err := a.inspectContainers(ctx, r)
	if err != nil {
		return a.handleAbsence(ctx, r, err)
	}
	a.clearAbsence(podKey(r))
	if why != "" {
		return 0, a.completeRequest(ctx, r, why)
	}
	states, wait := s.nextStates()
	if r.Status.Phase != kruise.ContainerRecreateRequestRecreating || !equality.Semantic.DeepEqual(states, r.Status.ContainerRecreateStates) {
		return lookAgain, a.patchStatus(ctx, r, func(st *kruise.ContainerRecreateRequestStatus) {
			setRecreating(st)
			st.ContainerRecreateStates = states
		})
	}
	if wait == 0 {
		wait = lookAgain
	}
	return a.advanceRequest(ctx, s, runtime, wait)
}

func setRecreating(s *kruise.ContainerRecreateRequestStatus) {
	s.Phase = kruise.ContainerRecreateRequestRecreating
}

// inspectContainers asks the runtime for the containers. why is set if that can never succeed.
func (a *Agent) inspectContainers(ctx context.Context, r *kruise.ContainerRecreateRequest) (s seen, runtime *cri.Runtime, why string, err error) {
	for i := range r.Spec.Containers {
		c := &r.Spec.Containers[i]
		if c.StatusContext == nil {
			return s, nil, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, "container "+c.Name+" has no statusContext"), nil
		}
		found, err := a.node.ContainerRuntime(ctx, c.StatusContext.ContainerID)
		switch {
		case cri.IsUnavailable(err):
			return s, nil, "", err
		case err != nil:
			return s, nil, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, message.ErrorText(err)), nil
		case runtime != nil && found != runtime:
			return s, nil, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, "the containers are of "+runtime.Name+" and "+found.Name), nil
		}
		runtime = found
	}
	if runtime == nil {
		return s, nil, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, "no container is named"), nil
	}
	containers, err := runtime.PodContainers(ctx, r.Labels[kruise.ContainerRecreateRequestPodUIDKey])
	if err != nil {
		return s, nil, "", err
	}
	if strategy := r.Spec.Strategy; strategy != nil && strategy.MinStartedSeconds > 0 {
		for i := range r.Spec.Containers {
			c, found := containers[r.Spec.Containers[i].Name]
			if !found {
				continue
			}
			if containers[c.Name], err = runtime.WithStartTime(ctx, c); err != nil {
				return s, nil, "", err
			}
		}
	}
	permits, err := permit.ReadPermits(r)
	if err != nil {
		a.events.Eventf(r, "Warning", "InvalidAnnotation", "No container is stopped: %s", message.ErrorText(err))
	}
	return seen{request: r, containers: containers, permits: permits, now: a.now()}, runtime, "", nil
}

// handleAbsence keeps a request while the runtime restarts, up to mostAbsence.
func (a *Agent) handleAbsence(ctx context.Context, r *kruise.ContainerRecreateRequest, err error) (time.Duration, error) {
	if !cri.IsUnavailable(err) {
		return 0, err
	}
	if a.now().Sub(a.absentSince(r)) > mostAbsence {
		return 0, a.completeRequest(ctx, r, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, message.ErrorText(err)))
	}
	if r.Status.Phase == "" {
		return lookAgain, a.patchStatus(ctx, r, setRecreating)
	}
	return lookAgain, nil
}

// advanceRequest is CRR-09, on the states as they are written.
func (a *Agent) advanceRequest(ctx context.Context, s seen, runtime *cri.Runtime, wait time.Duration) (time.Duration, error) {
	r := s.request
	ignores := r.Spec.Strategy != nil && r.Spec.Strategy.FailurePolicy == kruise.ContainerRecreateRequestFailurePolicyIgnore
	ordered := r.Spec.Strategy != nil && r.Spec.Strategy.OrderedRecreate
	finished := true
	for i, st := range r.Status.ContainerRecreateStates {
		switch st.Phase {
		case kruise.ContainerRecreateRequestFailed:
			if !ignores {
				return 0, a.completeRequest(ctx, r, "")
			}
			continue
		case kruise.ContainerRecreateRequestSucceeded:
			continue
		}
		finished = false
		if st.Phase == kruise.ContainerRecreateRequestRecreating {
			if ordered {
				return wait, nil
			}
			continue
		}
		run, found := s.containers[st.Name]
		if !found {
			return wait, nil
		}
		if s.permits[st.Name] != run.ID {
			continue // the manager has not permitted it
		}
		failed, err := a.restartContainer(ctx, s, runtime, i)
		if err != nil || !failed || !ignores {
			return lookAgain, err
		}
	}
	if finished {
		return 0, a.completeRequest(ctx, r, "")
	}
	return wait, nil
}

// completeRequest ends a request.
func (a *Agent) completeRequest(ctx context.Context, r *kruise.ContainerRecreateRequest, text string) error {
	return a.patchStatus(ctx, r, func(s *kruise.ContainerRecreateRequestStatus) {
		now := metav1.NewTime(a.now())
		s.Phase, s.CompletionTime, s.Message = kruise.ContainerRecreateRequestCompleted, &now, message.Truncate(text)
	})
}

// patchStatus patches the status of a request, and updates the request from the response.
func (a *Agent) patchStatus(ctx context.Context, r *kruise.ContainerRecreateRequest, change func(*kruise.ContainerRecreateRequestStatus)) error {
	before := r.DeepCopy()
	change(&r.Status)
	if err := a.client.Status().Patch(ctx, r, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of ContainerRecreateRequest %s: %w", client.ObjectKeyFromObject(r), err)
	}
	return nil
}

// replaceState replaces the state of a container.
func replaceState(states []state, next state) []state {
	out := slices.Clone(states)
	for i := range out {
		if out[i].Name == next.Name {
			out[i] = next
		}
	}
	return out
}
