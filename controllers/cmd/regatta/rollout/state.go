// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

// State is the state of a rollout of any kind.
type State struct {
	kinds.View
	// Paused is true if a field of the spec stops the rollout.
	Paused bool
	// Notes are what holds the rollout and what fails.
	Notes []string
	// Endless is why the rollout does not complete by itself, or why the status does not show that it did.
	Endless string
}

// ReadState reads the state of a rollout from the spec and the status of an object. It returns an error for a kind that
// has no rollout, and for an object whose fields cannot be read.
func ReadState(kind edit.Kind, object *unstructured.Unstructured) (State, error) {
	view, err := readView(kind, object)
	if err != nil {
		return State{}, err
	}
	s := State{View: view}
	w, err := findWorkload(kind, object)
	if err != nil {
		return State{}, err
	}
	paused, err := w.isPaused(object)
	if err != nil {
		return State{}, err
	}
	s.Paused = paused
	if paused {
		field := w.fieldPath(w.kind.Paused...)
		note := fmt.Sprintf("%s is true", field)
		if len(w.at) == 0 {
			note = fmt.Sprintf("paused; regatta rollout resume %s/%s lets it go on", kind.Names[0], object.GetName())
		}
		s.Notes = append(s.Notes, note)
	}
	for _, c := range view.Conditions {
		// Stalled repeats the deadline that is exceeded.
		stalled := c.Type == kruise.ConditionStalled && c.Status == corev1.ConditionTrue && c.Message != view.Deadline
		if c.IsTrouble() || stalled {
			s.Notes = append(s.Notes, describeCondition(c))
		}
	}
	s.Endless = whyEndless(w, view, object)
	return s, nil
}

func describeCondition(c kinds.Condition) string {
	text := joinLines(c.Message)
	if c.Type == kruise.UpdateHeld {
		return "held: " + text
	}
	return c.Type + ": " + text
}

// whyEndless tells why a rollout does not complete by itself, or why that cannot be seen; "" for most.
func whyEndless(w workload, v kinds.View, object *unstructured.Unstructured) string {
	if field := w.onDelete(object); field != nil {
		return fmt.Sprintf("%s is OnDelete: a pod is updated when a client deletes it", field)
	}
	selector := w.fieldPath("spec", "updateStrategy", "selector")
	switch w.kind.GroupKind() {
	case sidecarSet:
		strategy, _, _ := unstructured.NestedString(object.Object, "spec", "updateStrategy", "type")
		if strategy == string(kruise.NotUpdateSidecarSetStrategyType) {
			return "spec.updateStrategy.type is NotUpdate: running pods keep the containers that they have"
		}
	case advancedDaemon:
		selector = w.fieldPath("spec", "updateStrategy", "rollingUpdate", "selector")
	}
	if _, limited, _ := unstructured.NestedMap(object.Object, selector...); limited && v.Observed && !v.IsComplete() {
		return fmt.Sprintf("%s limits the update to some pods, and the status does not count these", selector)
	}
	return ""
}

// describeProgress is the state in a line.
func (s State) describeProgress() string {
	if !s.Observed {
		return "the controller has not seen the change yet"
	}
	counted := s.View // more pods may have the revision than have to
	counted.Updated, counted.Done = min(s.Updated, s.Target), min(s.Done, s.Target)
	text := counted.ProgressText()
	if s.Pods != s.Wanted {
		text += fmt.Sprintf("; there are %d pods, and %d are wanted", s.Pods, s.Wanted)
	}
	return strings.Join(append([]string{text}, s.Notes...), "; ")
}

// readView reads the counts of a rollout. It is that of package kinds for the kinds of that package.
func readView(kind edit.Kind, object *unstructured.Unstructured) (kinds.View, error) {
	if w, ok := kinds.FindByGroupKind(kind.GroupKind()); ok {
		typed, err := w.Read(object)
		if err != nil {
			return kinds.View{}, err
		}
		return w.View(typed), nil
	}
	switch kind.GroupKind() {
	case sidecarSet:
		return decodeView(object, func(o *kruise.SidecarSet) kinds.View { return kinds.ViewSidecarSet(o, &o.Status) })
	case unitedDeployment:
		return decodeView(object, func(o *kruise.UnitedDeployment) kinds.View { return kinds.ViewUnitedDeployment(o, &o.Status) })
	case deployment:
		return decodeView(object, viewDeployment)
	case nativeSet:
		return decodeView(object, viewStatefulSet)
	case nativeDaemon:
		return decodeView(object, viewDaemonSet)
	}
	return kinds.View{}, fmt.Errorf("a %s has no rollout", kind.Kind)
}

// decodeView reads the counts of an object of a type.
func decodeView[T any](object *unstructured.Unstructured, view func(*T) kinds.View) (kinds.View, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return kinds.View{}, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return view(typed), nil
}

func viewDeployment(d *appsv1.Deployment) kinds.View {
	s, wanted := &d.Status, int(ptr.Deref(d.Spec.Replicas, 1))
	v := kinds.View{
		Selector: d.Spec.Selector, Wanted: wanted, Target: wanted, Observed: s.ObservedGeneration >= d.Generation,
		Pods: int(s.Replicas), Available: int(s.AvailableReplicas), Updated: int(s.UpdatedReplicas),
	}
	v.Done = countDone(v)
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, kinds.Condition{
			Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
		late := c.Status == corev1.ConditionFalse && c.Reason == kruise.CloneSetProgressDeadlineExceededReason
		if c.Type == appsv1.DeploymentProgressing && late {
			v.Deadline = c.Message
		}
	}
	return v
}

// viewStatefulSet reads the partition as an ordinal: pods with that ordinal or a higher one are updated.
func viewStatefulSet(set *appsv1.StatefulSet) kinds.View {
	s, wanted, start, partition := &set.Status, int(ptr.Deref(set.Spec.Replicas, 1)), 0, 0
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition = int(ptr.Deref(rolling.Partition, 0))
	}
	v := kinds.View{
		Selector: set.Spec.Selector, Wanted: wanted, Target: max(start+wanted-max(partition, start), 0),
		Observed: s.ObservedGeneration >= set.Generation, Pods: int(s.Replicas), Available: int(s.AvailableReplicas),
		Updated: int(s.UpdatedReplicas), UpdateRevision: s.UpdateRevision,
	}
	v.Done = countDone(v)
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, kinds.Condition{
			Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return v
}

func viewDaemonSet(set *appsv1.DaemonSet) kinds.View {
	s, wanted := &set.Status, int(set.Status.DesiredNumberScheduled)
	v := kinds.View{
		Selector: set.Spec.Selector, Wanted: wanted, Target: wanted, Observed: s.ObservedGeneration >= set.Generation,
		Pods: int(s.CurrentNumberScheduled), Available: int(s.NumberAvailable), Updated: int(s.UpdatedNumberScheduled),
	}
	v.Done = countDone(v)
	for _, c := range s.Conditions {
		v.Conditions = append(v.Conditions, kinds.Condition{
			Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return v
}

// countDone is how many of the pods that are to be updated are updated and available, at least. The status of the
// kinds of Kubernetes does not say it: each pod that is not available, or not there, may be one of these.
func countDone(v kinds.View) int {
	return max(min(v.Updated, v.Target)-max(v.Pods-v.Available, v.Wanted-v.Available, 0), 0)
}
