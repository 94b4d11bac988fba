// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
)

// decideRestarts asks which containers are stopped now, and lets the node do so.
func (r *Reconciler) decideRestarts(ctx context.Context, request *kruise.ContainerRecreateRequest, pod *corev1.Pod) error {
	if !slices.ContainsFunc(request.Status.ContainerRecreateStates, func(s kruise.ContainerRecreateRequestContainerRecreateState) bool {
		return s.Phase == kruise.ContainerRecreateRequestPending
	}) {
		return r.reportHold(ctx, request, nil) // the node has not reported yet, or nothing waits
	}
	permits, err := permit.ReadPermits(request)
	if err != nil {
		return r.reportHold(ctx, request, []decision.Hold{{Reason: "InvalidAnnotation", Message: fmt.Sprintf("No container is stopped: %v. Remove the annotation.", err)}})
	}
	in, err := r.buildRestartsInput(ctx, request, pod, permits)
	if err != nil {
		return err
	}
	subject := facts.ObjectSubject("", "ContainerRecreateRequest", request)
	out, _ := engine.Decide(ctx, r.Engine, points.RestartsPoint(), subject, in)
	if denied := out.DeniedContainers(in); len(denied) > 0 {
		return r.failDeniedContainers(ctx, request, denied)
	}
	permitted := out.PermittedContainers(in)
	if out.Charge && len(permitted) > 0 && r.charge != nil {
		hold, err := r.charge(ctx, pod)
		if err != nil {
			hold = &decision.Hold{Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision, Message: fmt.Sprintf("No container is stopped, since the budget did not answer: %v", err)}
		}
		if hold != nil {
			return r.reportHold(ctx, request, []decision.Hold{*hold})
		}
	}
	if err := r.reportHold(ctx, request, out.Holds); err != nil {
		return err
	}
	before := request.DeepCopy()
	added, err := permits.AddToObject(request, permitted, func(name string) string { return targetContainerID(request, pod, name) })
	if err != nil || !added {
		return err
	}
	if err := r.Client.Patch(ctx, request, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("permitting the restarts of ContainerRecreateRequest %s: %w", client.ObjectKeyFromObject(request), err)
	}
	return nil
}

// targetContainerID is the ID of the run to end: that of the request, or by force the current one.
func targetContainerID(request *kruise.ContainerRecreateRequest, pod *corev1.Pod, name string) string {
	if status := statusOf(pod, name); status != nil && status.ContainerID != "" && request.Spec.Strategy != nil && request.Spec.Strategy.ForceRecreate {
		return status.ContainerID
	}
	for i := range request.Spec.Containers {
		if c := &request.Spec.Containers[i]; c.Name == name && c.StatusContext != nil {
			return c.StatusContext.ContainerID
		}
	}
	return ""
}

// buildRestartsInput returns the input of the decision.
func (r *Reconciler) buildRestartsInput(ctx context.Context, request *kruise.ContainerRecreateRequest, pod *corev1.Pod, permits permit.Permits) (points.RestartsInput, error) {
	s := request.Spec.Strategy
	if s == nil {
		s = &kruise.ContainerRecreateRequestStrategy{}
	}
	annotations := map[string]string{}
	for key, value := range request.Annotations {
		if key != permit.Key {
			annotations[key] = value
		}
	}
	in := points.RestartsInput{
		Now: r.Now().UnixNano(),
		Request: points.Request{
			Name: request.Name, Namespace: request.Namespace, Created: request.CreationTimestamp.UnixNano(), Labels: request.Labels, Annotations: annotations,
			Ordered: s.OrderedRecreate, Force: s.ForceRecreate, FailFast: s.FailurePolicy != kruise.ContainerRecreateRequestFailurePolicyIgnore,
		},
		Pod:     points.Pod{Name: pod.Name, Node: pod.Spec.NodeName, Labels: pod.Labels, Annotations: pod.Annotations},
		Budgets: []points.Budget{},
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		in.Pod.Owner = &points.Owner{Kind: owner.Kind, Name: owner.Name}
	}
	for _, c := range pod.Status.Conditions {
		in.Pod.Ready = in.Pod.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	for _, state := range request.Status.ContainerRecreateStates {
		c := points.Container{
			Name: state.Name, Phase: string(state.Phase), Permitted: permits[state.Name] != "",
			Found: state.Message != kruise.ContainerRecreateRequestNotFoundMessage,
		}
		if status := statusOf(pod, state.Name); status != nil {
			c.Restarts = int(status.RestartCount)
		}
		in.Containers = append(in.Containers, c)
	}
	if r.budgets != nil {
		budgets, err := r.budgets(ctx, pod)
		if err != nil {
			return in, fmt.Errorf("finding the budgets of pod %s: %w", client.ObjectKeyFromObject(pod), err)
		}
		in.Budgets = append(in.Budgets, budgets...)
	}
	return in, nil
}

// reportHold reports why no container is stopped. Without holds it removes that report.
func (r *Reconciler) reportHold(ctx context.Context, request *kruise.ContainerRecreateRequest, holds []decision.Hold) error {
	was := meta.FindStatusCondition(request.Status.Conditions, kruise.ContainerRecreateRequestHeld)
	if len(holds) == 0 {
		if was == nil {
			return nil
		}
		return r.patchStatus(ctx, request, func(s *kruise.ContainerRecreateRequestStatus) {
			condition.RemoveConditions(s, kruise.ContainerRecreateRequestHeld)
		})
	}
	first := slices.MinFunc(holds, func(a, b decision.Hold) int {
		return slices.Compare([]string{a.Rule, a.Message}, []string{b.Rule, b.Message})
	})
	text := first.Message
	if first.Rule != "" {
		text += " (rule " + first.Rule + ")"
	}
	text = message.Shorten(text)
	if was != nil && was.Reason == first.Reason && was.Message == text {
		return nil
	}
	told := was != nil && was.Reason == first.Reason
	err := r.patchStatus(ctx, request, func(s *kruise.ContainerRecreateRequestStatus) {
		condition.SetCondition(s, condition.Condition{
			Type: kruise.ContainerRecreateRequestHeld, Status: metav1.ConditionTrue, Reason: first.Reason, Message: text,
		}, 0, metav1.NewTime(r.Now()))
	})
	if err == nil && !told {
		r.Events.Event(request, corev1.EventTypeWarning, kruise.ContainerRecreateRequestHeld, text)
	}
	return err
}

// failDeniedContainers fails the containers whose restart is denied. The node ends the request if the
// other containers must not be restarted after a failure.
func (r *Reconciler) failDeniedContainers(ctx context.Context, request *kruise.ContainerRecreateRequest, denied map[string]points.Denial) error {
	return r.patchStatus(ctx, request, func(s *kruise.ContainerRecreateRequestStatus) {
		for i := range s.ContainerRecreateStates {
			if d, ok := denied[s.ContainerRecreateStates[i].Name]; ok {
				s.ContainerRecreateStates[i].Phase = kruise.ContainerRecreateRequestFailed
				s.ContainerRecreateStates[i].Message = message.Shorten(fmt.Sprintf("%s (rule %s)", d.Message, d.Rule))
			}
		}
	})
}
