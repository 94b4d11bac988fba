// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"slices"
	"time"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
)

// state is the progress of a container.
type state = kruise.ContainerRecreateRequestContainerRecreateState

// seen has the containers of a request as one reconcile found them.
type seen struct {
	request    *kruise.ContainerRecreateRequest
	containers map[string]cri.Container
	permits    permit.Permits
	now        time.Time
}

// nextStates returns the states of all containers, in the order of the spec. wait is when to reconcile
// again without a change; 0 for never.
func (s seen) nextStates() (out []state, wait time.Duration) {
	for i := range s.request.Spec.Containers {
		c := &s.request.Spec.Containers[i]
		next, soon := s.nextState(c)
		out = append(out, next)
		if soon > 0 && (wait == 0 || soon < wait) {
			wait = soon
		}
	}
	return out, wait
}

// recordedState is the state of a container in the status.
func (s seen) recordedState(name string) state {
	states := s.request.Status.ContainerRecreateStates
	if i := slices.IndexFunc(states, func(st state) bool { return st.Name == name }); i >= 0 {
		return states[i]
	}
	return state{Name: name, Phase: kruise.ContainerRecreateRequestPending}
}

// nextState is CRR-08.
func (s seen) nextState(c *kruise.ContainerRecreateRequestContainer) (next state, wait time.Duration) {
	next = s.recordedState(c.Name)
	if next.Phase == kruise.ContainerRecreateRequestFailed || next.Phase == kruise.ContainerRecreateRequestSucceeded {
		return next, 0
	}
	run, found := s.containers[c.Name]
	next.Message = ""
	switch {
	case !found:
		next.Phase, next.Message = kruise.ContainerRecreateRequestPending, kruise.ContainerRecreateRequestNotFoundMessage
	case run.Exited:
		next.Phase = kruise.ContainerRecreateRequestRecreating
	case s.isForced() && !s.isKilled(c.Name, run):
		next.Phase = kruise.ContainerRecreateRequestPending
	case c.StatusContext != nil && (run.ID != c.StatusContext.ContainerID || int64(run.Restarts) > int64(c.StatusContext.RestartCount)):
		next.Phase = kruise.ContainerRecreateRequestRecreating
		if wait = s.timeToSuccess(c.Name, run); wait == 0 {
			next.Phase = kruise.ContainerRecreateRequestSucceeded
		}
	default:
		next.Phase = kruise.ContainerRecreateRequestPending
	}
	if next.Phase == kruise.ContainerRecreateRequestRecreating || found && s.isKilled(c.Name, run) {
		next.IsKilled = true
	}
	return next, max(0, wait)
}

func (s seen) isForced() bool {
	return s.request.Spec.Strategy != nil && s.request.Spec.Strategy.ForceRecreate
}

// isKilled reports whether the request has ended a run already: it was written, or the run
// that the manager named is no longer the current one. The latter is the only sign of a stop if the
// agent ended before it could write.
func (s seen) isKilled(name string, run cri.Container) bool {
	return s.recordedState(name).IsKilled || s.permits[name] != "" && s.permits[name] != run.ID
}

// timeToSuccess is 0 for a container that runs again, is ready, and has been running for long enough.
// It is negative while that depends on the pod's status, and otherwise the remaining time.
func (s seen) timeToSuccess(name string, run cri.Container) time.Duration {
	const unknown = -1
	i := slices.IndexFunc(s.request.Status.ContainerStatusSnapshot, func(c kruise.ContainerStatusSnapshot) bool { return c.Name == name })
	if i < 0 || !run.Running {
		return unknown
	}
	if told := s.request.Status.ContainerStatusSnapshot[i]; told.ContainerID != run.ID || !told.Ready {
		return unknown
	}
	strategy := s.request.Spec.Strategy
	if strategy == nil || strategy.MinStartedSeconds == 0 {
		return 0
	}
	return max(0, run.StartedAt.Add(time.Duration(strategy.MinStartedSeconds)*time.Second).Sub(s.now))
}
