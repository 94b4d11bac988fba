// SPDX-License-Identifier: Apache-2.0

package podmeta

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// Result is the result of one probe of a pod.
type Result struct {
	Marker Marker
	Probe  *v1alpha1.PodContainerProbe
	State  v1alpha1.ProbeState
	// Message is the output of the probe.
	Message string
	// Probed is when it was probed last, and Since when the state last changed.
	Probed, Since *metav1.Time
}

// Writer writes the conditions, labels and annotations onto pods that results call for.
type Writer struct {
	Client client.Client
	Engine *engine.Engine
	Now    func() time.Time
}

// BuildInput returns the input of the decision about a pod.
func (w Writer) BuildInput(pod *corev1.Pod, serverless bool, results []Result) points.MarkersInput {
	in := points.MarkersInput{
		Now: w.Now().UnixNano(), Namespace: pod.Namespace, Serverless: serverless, Results: []points.ProbeResult{},
		Pod: points.Pod{Name: pod.Name, Node: pod.Spec.NodeName, Labels: pod.Labels, Annotations: pod.Annotations},
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		in.Pod.Owner = &points.Owner{Kind: owner.Kind, Name: owner.Name}
	}
	in.Pod.Ready = availability.HasReadyCondition(pod)
	for _, r := range results {
		result := points.ProbeResult{
			Marker: r.Marker.Name, Probe: r.Probe.Name, Container: r.Probe.ContainerName, State: string(r.State), Message: r.Message,
			ConditionType: r.Probe.PodConditionType, Policies: []points.MarkerPolicy{},
		}
		if r.Since != nil {
			result.Since = r.Since.UnixNano()
		}
		for _, p := range r.Probe.MarkerPolicy {
			result.Policies = append(result.Policies, points.MarkerPolicy{State: string(p.State), Labels: p.Labels, Annotations: p.Annotations})
		}
		in.Results = append(in.Results, result)
	}
	return in
}

// ApplyResults decides how a pod is marked by the results, and writes the difference. held is the
// first reason why the pod stays as it is.
func (w Writer) ApplyResults(ctx context.Context, pod *corev1.Pod, in points.MarkersInput, results []Result) (held *decision.Hold, err error) {
	patch, held, err := w.DecidePatch(ctx, pod, in, results)
	if patch == nil {
		return held, err
	}
	_, err = w.Write(ctx, pod, patch)
	return nil, err
}

// DecidePatch decides how a pod is marked by the results. The patch has the difference, nil for none;
// held is the first reason why the pod stays as it is.
func (w Writer) DecidePatch(ctx context.Context, pod *corev1.Pod, in points.MarkersInput, results []Result) (patch client.Patch, held *decision.Hold, err error) {
	subject := facts.PodSubject(pod)
	answer, _ := engine.Decide(ctx, w.Engine, points.MarkersPoint(), subject, in)
	if len(answer.Holds) > 0 {
		return nil, &answer.Holds[0], nil
	}
	differs := w.buildPatch(pod, answer.ClampAnswer(in), results)
	if differs == nil {
		return nil, nil, nil
	}
	raw, err := json.Marshal(differs)
	if err != nil {
		return nil, nil, fmt.Errorf("marking pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return client.RawPatch(types.StrategicMergePatchType, raw), nil, nil
}

// Write applies the patch, and returns the pod as it is afterwards.
func (w Writer) Write(ctx context.Context, pod *corev1.Pod, patch client.Patch) (*corev1.Pod, error) {
	now := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := w.Client.Status().Patch(ctx, now, patch); err != nil {
		return nil, fmt.Errorf("marking pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return now, nil
}

// buildPatch returns the difference between a pod and an answer, nil for none. The patch has the UID,
// since another pod may have the same name by now.
func (w Writer) buildPatch(pod *corev1.Pod, answer points.MarkersOutput, results []Result) map[string]any {
	metadata, status := map[string]any{}, map[string]any{}
	if labels := diffMetadata(pod.Labels, answer.Labels, answer.RemoveLabels); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := diffMetadata(pod.Annotations, answer.Annotations, answer.RemoveAnnotations); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if conditions := w.changedConditions(pod, answer.Conditions, results); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	if len(metadata) == 0 && len(status) == 0 {
		return nil
	}
	metadata["uid"] = pod.UID
	return map[string]any{"metadata": metadata, "status": status}
}

func diffMetadata(have, want map[string]string, remove []string) map[string]any {
	out := map[string]any{}
	for key, value := range want {
		if was, ok := have[key]; !ok || was != value {
			out[key] = value
		}
	}
	for _, key := range remove {
		if _, ok := have[key]; ok {
			out[key] = nil
		}
	}
	return out
}

// changedConditions returns the conditions that differ in status or message. The times are those of the probe.
func (w Writer) changedConditions(pod *corev1.Pod, want []points.MarkerCondition, results []Result) (out []map[string]any) {
	for _, c := range want {
		next := corev1.PodCondition{Type: corev1.PodConditionType(c.Type), Status: corev1.ConditionStatus(c.Status), Message: message.Shorten(c.Message)}
		was := inplace.FindCondition(pod, next.Type)
		if was != nil && was.Status == next.Status && was.Message == next.Message {
			continue
		}
		now := metav1.NewTime(w.Now())
		next.LastProbeTime, next.LastTransitionTime = now, now
		for _, r := range results {
			if r.Probe.PodConditionType != c.Type {
				continue
			}
			if r.Probed != nil {
				next.LastProbeTime = *r.Probed
			}
			if r.Since != nil {
				next.LastTransitionTime = *r.Since
			}
			break
		}
		condition := map[string]any{
			"type": next.Type, "status": next.Status, "lastProbeTime": next.LastProbeTime, "lastTransitionTime": next.LastTransitionTime, "message": nil,
		}
		if next.Message != "" { // the one before would stay otherwise
			condition["message"] = next.Message
		}
		out = append(out, condition)
	}
	return out
}

// ResultsFromStatus returns the results for a pod in the status of a NodePodProbe, by marker and then
// in the order of its probes. A result of a marker or probe that is gone is left out.
func ResultsFromStatus(markers []Marker, status *v1alpha1.PodProbeStatus) (out []Result) {
	states := map[string]*v1alpha1.ContainerProbeState{}
	for i := range status.ProbeStates {
		if s := &status.ProbeStates[i]; s.State != "" {
			states[s.Name] = s
		}
	}
	for _, m := range markers {
		for i := range m.Spec.Probes {
			probe := &m.Spec.Probes[i]
			if s := states[Name(m.Name, probe.Name)]; s != nil {
				out = append(out, Result{Marker: m, Probe: probe, State: s.State, Message: s.Message, Probed: s.LastProbeTime, Since: s.LastTransitionTime})
			}
		}
	}
	return out
}

// OfConditions returns the results that a serverless pod has in its own conditions.
func OfConditions(markers []Marker, pod *corev1.Pod) (out []Result) {
	states := map[corev1.ConditionStatus]v1alpha1.ProbeState{
		corev1.ConditionTrue: v1alpha1.ProbeSucceeded, corev1.ConditionFalse: v1alpha1.ProbeFailed, corev1.ConditionUnknown: v1alpha1.ProbeUnknown,
	}
	for _, m := range markers {
		for i := range m.Spec.Probes {
			probe := &m.Spec.Probes[i]
			c := inplace.FindCondition(pod, corev1.PodConditionType(probe.PodConditionType))
			if probe.PodConditionType == "" || c == nil || states[c.Status] == "" {
				continue
			}
			out = append(out, Result{Marker: m, Probe: probe, State: states[c.Status], Message: c.Message, Probed: &c.LastProbeTime, Since: &c.LastTransitionTime})
		}
	}
	return out
}
