// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// recreateRequestKept is what only the hub has fields for.
type recreateRequestKept struct {
	// Conditions of the hub, without the condition PreRecreateGrace if that is the first and the annotation says it all.
	Conditions []metav1.Condition       `json:"conditions,omitempty"`
	Originals  conversiondata.Originals `json:"annotations,omitempty"`
}

// recreateRequestSpelled is what only this version says so.
type recreateRequestSpelled struct {
	Spellings conversiondata.Spellings `json:"annotations,omitempty"`
}

// ConvertTo fills the hub. An annotation that cannot be read stays an annotation.
func (in *ContainerRecreateRequest) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.ContainerRecreateRequest)
	if !ok {
		return fmt.Errorf("converting to %T: a ContainerRecreateRequest is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta, out.Spec = src.ObjectMeta, src.Spec
	var kept recreateRequestKept
	conversiondata.RestoreFields(&out.Annotations, conversiondata.NewerKey, &kept)
	var spelled recreateRequestSpelled
	snapshot, _ := snapshotMirror().ToField(&out.Annotations, kept.Originals, &spelled.Spellings)
	acquired, _ := acquiredMirror().ToField(&out.Annotations, kept.Originals, &spelled.Spellings)
	out.Status = v1beta1.ContainerRecreateRequestStatus{
		Phase: src.Status.Phase, CompletionTime: src.Status.CompletionTime, Message: src.Status.Message,
		ContainerRecreateStates: recreateStates[hubRecreateState](src.Status.ContainerRecreateStates),
		ContainerStatusSnapshot: snapshot, Conditions: withGrace(kept.Conditions, acquired),
	}
	return conversiondata.StoreFields(&out.Annotations, conversiondata.OlderKey, spelled)
}

// ConvertFrom reads the hub.
func (in *ContainerRecreateRequest) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.ContainerRecreateRequest)
	if !ok {
		return fmt.Errorf("converting from %T: a ContainerRecreateRequest is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta, in.Spec = src.ObjectMeta, src.Spec
	in.Status = ContainerRecreateRequestStatus{
		Phase: src.Status.Phase, CompletionTime: src.Status.CompletionTime, Message: src.Status.Message,
		ContainerRecreateStates: recreateStates[recreateState](src.Status.ContainerRecreateStates),
	}
	var spelled recreateRequestSpelled
	conversiondata.RestoreFields(&in.Annotations, conversiondata.OlderKey, &spelled)
	acquired, rest := withoutGrace(src.Status.Conditions)
	kept := recreateRequestKept{Conditions: rest}
	snapshotMirror().FromField(src.Status.ContainerStatusSnapshot, &in.Annotations, spelled.Spellings, &kept.Originals)
	acquiredMirror().FromField(acquired, &in.Annotations, spelled.Spellings, &kept.Originals)
	return conversiondata.StoreFields(&in.Annotations, conversiondata.NewerKey, kept)
}

type (
	recreateState    = ContainerRecreateRequestContainerRecreateState
	hubRecreateState = v1beta1.ContainerRecreateRequestContainerRecreateState
)

// recreateStates changes between the two types of a state, which differ in what the schema refuses only.
func recreateStates[Out, In recreateState | hubRecreateState](states []In) []Out {
	if states == nil {
		return nil
	}
	out := make([]Out, 0, len(states))
	for _, state := range states {
		out = append(out, Out(state))
	}
	return out
}
