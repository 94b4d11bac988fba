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
	"github.com/regatta-sh/regatta/controllers/workload/step"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/message"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
)

const (
	// lookAgain is when to look at containers again that nothing reports about.
	lookAgain = 3 * time.Second
	// mostAbsence is how long a request is kept while no container runtime answers.
	mostAbsence = time.Minute
)

// Reconcile works on the requests of one pod.
func (a *Agent) Reconcile(ctx context.Context, pod reconcile.Request) (reconcile.Result, error) {
	all, err := a.requests(ctx, pod.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	work, waiting := pick(all)
	if work == nil { // then none waits
		a.present(pod.NamespacedName)
		return reconcile.Result{}, nil
	}
	var failed error // of those that wait, which keep the other from nothing
	for _, r := range waiting {
		err := a.write(ctx, r, func(s *kruise.ContainerRecreateRequestStatus) { s.Phase = kruise.ContainerRecreateRequestPending })
		failed = errors.Join(failed, client.IgnoreNotFound(err))
	}
	after, err := a.round(ctx, work)
	if err != nil {
		after = 0 // what failed is tried again after a back-off, not each time the runtime would be asked
	}
	return step.Result(ctx, work, after, errors.Join(failed, err))
}

// round does one thing for a request, and says when to look again.
func (a *Agent) round(ctx context.Context, r *kruise.ContainerRecreateRequest) (time.Duration, error) {
	if !leaving(r) {
		if r.Status.Phase != kruise.ContainerRecreateRequestRecreating {
			return 0, a.write(ctx, r, begin)
		}
		return 0, nil
	}
	s, runtime, why, err := a.see(ctx, r)
	if err != nil {
		return a.absent(ctx, r, err)
	}
	a.present(podKey(r))
	if why != "" {
		return 0, a.completeRequest(ctx, r, why)
	}
	states, wait := s.states()
	if r.Status.Phase != kruise.ContainerRecreateRequestRecreating || !equality.Semantic.DeepEqual(states, r.Status.ContainerRecreateStates) {
		return lookAgain, a.write(ctx, r, func(st *kruise.ContainerRecreateRequestStatus) {
			begin(st)
			st.ContainerRecreateStates = states
		})
	}
	if wait == 0 {
		wait = lookAgain
	}
	return a.act(ctx, s, runtime, wait)
}

func begin(s *kruise.ContainerRecreateRequestStatus) {
	s.Phase = kruise.ContainerRecreateRequestRecreating
}

// see asks the runtime for the containers. why is set where it cannot ever be asked.
func (a *Agent) see(ctx context.Context, r *kruise.ContainerRecreateRequest) (s seen, runtime *cri.Runtime, why string, err error) {
	for i := range r.Spec.Containers {
		c := &r.Spec.Containers[i]
		if c.StatusContext == nil {
			return s, nil, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, "container "+c.Name+" has no statusContext"), nil
		}
		found, err := a.node.Of(ctx, c.StatusContext.ContainerID)
		switch {
		case cri.Unavailable(err):
			return s, nil, "", err
		case err != nil:
			return s, nil, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, message.Of(err)), nil
		case runtime != nil && found != runtime:
			return s, nil, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, "the containers are of "+runtime.Name+" and "+found.Name), nil
		}
		runtime = found
	}
	if runtime == nil {
		return s, nil, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, "no container is named"), nil
	}
	containers, err := runtime.Containers(ctx, r.Labels[kruise.ContainerRecreateRequestPodUIDKey])
	if err != nil {
		return s, nil, "", err
	}
	if strategy := r.Spec.Strategy; strategy != nil && strategy.MinStartedSeconds > 0 {
		for i := range r.Spec.Containers {
			c, found := containers[r.Spec.Containers[i].Name]
			if !found {
				continue
			}
			if containers[c.Name], err = runtime.Started(ctx, c); err != nil {
				return s, nil, "", err
			}
		}
	}
	permits, err := permit.Of(r)
	if err != nil {
		a.events.Eventf(r, "Warning", "InvalidAnnotation", "No container is stopped: %s", message.Of(err))
	}
	return seen{request: r, containers: containers, permits: permits, now: a.now()}, runtime, "", nil
}

// absent keeps a request while the runtime restarts, but not for ever.
func (a *Agent) absent(ctx context.Context, r *kruise.ContainerRecreateRequest, err error) (time.Duration, error) {
	if !cri.Unavailable(err) {
		return 0, err
	}
	if a.now().Sub(a.absentSince(r)) > mostAbsence {
		return 0, a.completeRequest(ctx, r, fmt.Sprintf(kruise.ContainerRecreateRequestRuntimeMessage, message.Of(err)))
	}
	if r.Status.Phase == "" {
		return lookAgain, a.write(ctx, r, begin)
	}
	return lookAgain, nil
}

// act is CRR-09, with the states as they are written.
func (a *Agent) act(ctx context.Context, s seen, runtime *cri.Runtime, wait time.Duration) (time.Duration, error) {
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
			continue // the manager has not said so
		}
		failed, err := a.restart(ctx, s, runtime, i)
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
	return a.write(ctx, r, func(s *kruise.ContainerRecreateRequestStatus) {
		now := metav1.NewTime(a.now())
		s.Phase, s.CompletionTime, s.Message = kruise.ContainerRecreateRequestCompleted, &now, message.Truncate(text)
	})
}

// write changes the status of a request as it was read, and takes what the API server
// made of it.
func (a *Agent) write(ctx context.Context, r *kruise.ContainerRecreateRequest, change func(*kruise.ContainerRecreateRequestStatus)) error {
	before := r.DeepCopy()
	change(&r.Status)
	if err := a.client.Status().Patch(ctx, r, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of ContainerRecreateRequest %s: %w", client.ObjectKeyFromObject(r), err)
	}
	return nil
}

// written replaces the state of a container.
func written(states []state, next state) []state {
	out := slices.Clone(states)
	for i := range out {
		if out[i].Name == next.Name {
			out[i] = next
		}
	}
	return out
}
