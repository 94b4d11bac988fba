// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/agents"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/engine/decision"
)

const (
	// AgentMissingReason is the reason of a request that waits because its node has no node agent.
	AgentMissingReason = "NodeAgentMissing"
	// agentTime is how long a request without a deadline waits for a node agent that is gone.
	agentTime = nodes.ResponseTime
	// agentAgain is how soon a request that waits for a node agent is reconciled again.
	agentAgain = 10 * time.Second
)

// settleEnded returns the states of the containers of a request, and whether it changed one. A container that has ended, and that the
// kubelet does not start again, is settled here, since it never becomes ready. It has succeeded if it was restarted and then ended with
// success.
func settleEnded(request *kruise.ContainerRecreateRequest, pod *corev1.Pod) (states []kruise.ContainerRecreateRequestContainerRecreateState, changed bool) {
	states = slices.Clone(request.Status.ContainerRecreateStates)
	for i := range states {
		s := &states[i]
		if s.Phase == kruise.ContainerRecreateRequestSucceeded || s.Phase == kruise.ContainerRecreateRequestFailed || !containerstatus.HasEnded(pod, s.Name) {
			continue
		}
		changed = true
		status := containerstatus.FindStatus(pod, s.Name)
		at := slices.IndexFunc(request.Spec.Containers, func(c kruise.ContainerRecreateRequestContainer) bool { return c.Name == s.Name })
		restarted := at >= 0 && request.Spec.Containers[at].StatusContext != nil && request.Spec.Containers[at].StatusContext.ContainerID != status.ContainerID
		exitCode := status.State.Terminated.ExitCode
		if restarted && exitCode == 0 {
			s.Phase, s.Message = kruise.ContainerRecreateRequestSucceeded, ""
			continue
		}
		s.Phase = kruise.ContainerRecreateRequestFailed
		s.Message = message.Shorten(fmt.Sprintf("the container has ended with exit code %d, and its restart policy does not start it again", exitCode))
	}
	return states, changed
}

// awaitAgent makes a request wait while its node has no node agent. It ends the request after some time if the user set no
// deadline, since nothing else would. It returns when to reconcile again, 0 if there is an agent or the request has ended.
func (r *Reconciler) awaitAgent(ctx context.Context, request *kruise.ContainerRecreateRequest, pod *corev1.Pod) (time.Duration, error) {
	if r.agents == nil {
		return 0, nil
	}
	there, left, why, err := r.findAgent(ctx, pod.Spec.NodeName)
	if err != nil {
		return 0, fmt.Errorf("finding the node agent of ContainerRecreateRequest %s/%s: %w", request.Namespace, request.Name, err)
	}
	was := meta.FindStatusCondition(request.Status.Conditions, kruise.ContainerRecreateRequestHeld)
	waits := was != nil && was.Reason == AgentMissingReason
	switch {
	case there && waits:
		return 0, r.reportHold(ctx, request, nil)
	case there:
		return 0, nil
	case left > 0 && !waits: // the agent may be in replacement
		return left, nil
	}
	if waits && request.Spec.ActiveDeadlineSeconds == nil && r.Now().Sub(was.LastTransitionTime.Time) >= agentTime {
		return 0, r.completeRequest(ctx, request, kruise.ContainerRecreateRequestNoResponseMessage)
	}
	if !waits && was != nil { // the time of the condition is since when the request waits for an agent
		if err := r.reportHold(ctx, request, nil); err != nil {
			return 0, err
		}
	}
	message := why + ", and only a node agent can restart containers."
	if request.Spec.ActiveDeadlineSeconds == nil {
		message += fmt.Sprintf(" The request fails if there is none for %s.", agentTime)
	}
	return agentAgain, r.reportHold(ctx, request, []decision.Hold{{Reason: AgentMissingReason, Message: message}})
}

// findAgent reports whether a node has a node agent that should answer. left is for how long the agent may still be in replacement,
// and why says what is wrong. The pod of an agent stays on a node that is gone for good and is not deleted.
func (r *Reconciler) findAgent(ctx context.Context, name string) (there bool, left time.Duration, why string, err error) {
	there, left, err = r.agents(ctx, name)
	if err != nil || !there || name == "" {
		return there, left, fmt.Sprintf("No node agent runs on node %s", name), err
	}
	node, err := nodes.FindNode(ctx, r.Client, r.Live, name)
	if err != nil || node == nil { // the pod of the agent is deleted next
		return true, 0, "", err
	}
	since := nodes.UnreadySince(node)
	if since.IsZero() {
		return true, 0, "", nil
	}
	return false, since.Add(agents.Grace).Sub(r.Now()), fmt.Sprintf("Node %s is not ready", name), nil
}
