// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Actions of rollout/change.
const (
	InPlace  = "InPlace"
	Recreate = "Recreate"
	Reject   = "Reject"
	// Wait leaves the pod as it is; the point is asked again within seconds.
	Wait = "Wait"
)

// Classes of a template difference.
const (
	ChangeImage     = "image"     // a container's image is replaced
	ChangeMetadata  = "metadata"  // a label or an annotation of the template
	ChangeResources = "resources" // a container's cpu or memory is replaced by a valid quantity
	ChangeOther     = "other"     // anything else
)

// ChangeInput asks how a pod may be brought from one template to another.
type ChangeInput struct {
	// Workload is what the pods belong to.
	Workload Workload `json:"workload"`
	// Policy is ReCreate, InPlaceIfPossible or InPlaceOnly.
	Policy string `json:"policy"`
	// From is the revision that the pod has.
	From string `json:"from"`
	// To is the revision that it is to have.
	To string `json:"to"`
	// Known is false when one of the two templates is gone from history.
	Known bool `json:"known"`
	// Changes are the difference of the two templates.
	Changes []TemplateChange `json:"changes"`
	// QoSChanged is true when the two templates have different QoS classes.
	QoSChanged bool `json:"qosChanged"`
	// ClaimsChanged is true when both revisions recorded their volume claim
	// templates and these differ.
	ClaimsChanged bool `json:"claimsChanged"`
	// Claims are how the volume claims of the pod differ from their templates, where claims follow
	// these: with VolumeClaimUpdateStrategy OnPodRollingUpdate (ASTS-14). They grow before the pod is
	// changed. The two revisions are the same if nothing else is to be done.
	Claims []ClaimChange `json:"claims,omitempty"`
	// EnvRefresh names the containers whose env reads changed metadata and whose
	// image stays: only a node agent can restart them.
	EnvRefresh []string `json:"envRefresh,omitempty"`
	// Ungated is true for pods without the readiness gate InPlaceUpdateReady: they stay in
	// their services while they are changed in place.
	Ungated bool `json:"ungated,omitempty"`
	// Unserved is true for pods that no Service selects, where that is known.
	Unserved bool `json:"unserved,omitempty"`
	// RestartRequested is true when the template of the new revision asks for new pods: its annotation
	// kubectl.kubernetes.io/restartedAt has a later time than that of the old one.
	RestartRequested bool `json:"restartRequested,omitempty"`
	// Gates are the feature gates.
	Gates ChangeGates `json:"gates"`
}

// ChangeGates are the feature gates that rollout/change depends on.
type ChangeGates struct {
	VerticalScaling     bool `json:"verticalScaling"`     // InPlaceWorkloadVerticalScaling
	RecreateOnNewClaims bool `json:"recreateOnNewClaims"` // RecreatePodWhenChangeVCTInCloneSetGate
	EnvFromMetadata     bool `json:"envFromMetadata"`     // InPlaceUpdateEnvFromMetadata
	// NodeAgent is true where a node agent restarts containers whose env reads changed
	// metadata: KruiseDaemon and DaemonWatchingPod are on, and the node of the pod has one.
	NodeAgent bool `json:"nodeAgent"`
}

// TemplateChange is one operation of the difference between two templates.
type TemplateChange struct {
	// Class is image, metadata, resources or other.
	Class string `json:"class"`
	// Op is add, remove or replace, as in RFC 6902.
	Op string `json:"op"`
	// Path is below the template, e.g. /spec/containers/0/image.
	Path string `json:"path"`
	// Container is its name in the old template, for image and resources.
	Container string `json:"container,omitempty"`
}

// What of a volume claim differs from its template.
const (
	ClaimSize        = "size"
	ClaimClass       = "storageClass"
	ClaimAccessModes = "accessModes"
)

// Why a claim cannot be brought to its template.
const (
	ObstacleImmutable = "Immutable"     // Kubernetes never changes it on a claim
	ObstacleClass     = "NotExpandable" // the storage class does not allow volumes to grow
	ObstacleNoClass   = "ClassNotFound" // the claim names no storage class, or one that is not there
)

// ClaimChange is one difference between a volume claim and its template.
type ClaimChange struct {
	// Claim is the name of the claim.
	Claim string `json:"claim"`
	// Template is the name of its template.
	Template string `json:"template"`
	// What is size, storageClass or accessModes.
	What string `json:"what"`
	// From is what the claim has.
	From string `json:"from"`
	// To is what the template asks for.
	To string `json:"to"`
	// Class is the storage class of the claim, "" if it names none.
	Class string `json:"class"`
	// Obstacle is why the claim cannot be brought there: Immutable, NotExpandable or
	// ClassNotFound; "" if it can.
	Obstacle string `json:"obstacle,omitempty"`
}

// ChangeOutput is the way, and why.
type ChangeOutput struct {
	// Action is InPlace, Recreate, Reject, or Wait to leave the pod as it is for now.
	Action string `json:"action"`
	// Reason is CamelCase, for machines.
	Reason string `json:"reason"`
	// Message is a sentence, for people.
	Message string `json:"message"`
	// KeepReady leaves the readiness gate of the pod open while its containers restart, which saves
	// two writes and the grace period. It is only for changes in place, of pods that no Service
	// selects.
	KeepReady bool `json:"keepReady,omitempty"`
}

// Values of Settings.ReadinessGate.
const (
	GateAlways      = "Always"
	GateWhereServed = "WhereServed"
)

// Settings are the knobs of rollouts: the rule settings.
type Settings struct {
	// ReadinessGate says which pods are made not ready before containers restart in place:
	// Always, or WhereServed for those that a Service selects; Always if unset.
	ReadinessGate string `json:"readinessGate,omitempty"`
}

// ChangePoint decides whether a pod is updated in place or recreated.
// Controllers of workloads ask it for two revisions that differ, before they
// bring pods from one to the other. Without an answer the pod is left as it is, and the
// point is asked again.
func ChangePoint() decision.Point[ChangeInput, ChangeOutput] {
	return decision.Point[ChangeInput, ChangeOutput]{
		Name: "rollout/change", Budget: 100 * time.Millisecond, MaxResult: 1000,
		// The reason stays NoDecision whatever is missing: by it pods are known that wait for a decision.
		Fallback: func(in ChangeInput) ChangeOutput {
			h := decision.UndecidedHold("No policy could decide how to change this pod, so it stays as it is; the policies are asked again.", in)
			return ChangeOutput{Action: Wait, Reason: decision.ReasonNoDecision, Message: h.Message}
		},
		Check: func(in ChangeInput, out ChangeOutput) error {
			if out.KeepReady && (out.Action != InPlace || !in.Unserved) {
				return fmt.Errorf("keepReady is only for action %s and pods that no Service selects", InPlace)
			}
			switch out.Action {
			case InPlace, Recreate, Reject, Wait:
				return nil
			}
			return fmt.Errorf("action is %q, want %s, %s, %s or %s", out.Action, InPlace, Recreate, Reject, Wait)
		},
		Lean: leanChange,
	}
}

// leanChange: to reject a change or to wait is stricter than to make it in either way.
// In place and recreated are two ways of which neither is the stricter. To make a pod not
// ready first is stricter than not to.
func leanChange(_ ChangeInput, then, now ChangeOutput) decision.Strictness {
	acts := func(out ChangeOutput) bool { return out.Action == InPlace || out.Action == Recreate }
	return decision.StrictnessOf(acts(then) && (!acts(now) || then.KeepReady && !now.KeepReady), acts(now) && (!acts(then) || now.KeepReady && !then.KeepReady))
}
