// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Actions of rollout/predownload, beside Wait.
const (
	// Pull has images pulled on the nodes of old pods.
	Pull = "Pull"
	// Ignore leaves that to the updates themselves, for good.
	Ignore = "Ignore"
)

// PredownloadInput asks whether the images of a revision are pulled ahead of an update
//
type PredownloadInput struct {
	// Workload is what the pods belong to.
	Workload Workload `json:"workload"`
	// Strategy is how it wants to be updated.
	Strategy Strategy `json:"strategy"`
	// Revisions are the two that the rollout goes between.
	Revisions Revisions `json:"revisions"`
	// Change is what rollout/change says of the way between them.
	Change string `json:"change"`
	// MaxUnavailable is how many pods may be unavailable, percentages rounded down.
	MaxUnavailable int `json:"maxUnavailable"`
	// UpdatedReady is how many updated pods are ready.
	UpdatedReady int `json:"updatedReady"`
	// MinUpdatedReady is how many the workload wants to be before images are pulled.
	MinUpdatedReady int `json:"minUpdatedReady"`
	// SameNode is true for workloads whose pods are recreated on their nodes, so that images
	// pulled ahead serve these pods as well.
	SameNode bool `json:"sameNode"`
	// Images are those of the containers that are new or have another image.
	Images []ContainerImage `json:"images"`
}

// ContainerImage is an image of a container.
type ContainerImage struct {
	// Container is its name.
	Container string `json:"container"`
	// Image that it gets.
	Image string `json:"image"`
	// Was is the image that it has; empty for a container that is new.
	Was string `json:"was"`
}

// PredownloadOutput reports whether images are pulled ahead. The clamp in Go pulls those of
// the question alone.
type PredownloadOutput struct {
	// Action is Pull, Ignore, or Wait to ask again when something changes.
	Action string `json:"action"`
	// Reason is CamelCase, for machines.
	Reason string `json:"reason"`
	// Message is a sentence, for people.
	Message string `json:"message"`
}

// PredownloadPoint decides whether images are pulled ahead of an update. The controllers of
// CloneSets and Advanced StatefulSets ask it once for a revision, with the gate
// PreDownloadImageForInPlaceUpdate, that of Advanced DaemonSets with the gate
// PreDownloadImageForDaemonSetUpdate. Without an answer nothing is pulled ahead, and the
// point is asked again. An update never waits for it.
func PredownloadPoint() decision.Point[PredownloadInput, PredownloadOutput] {
	return decision.Point[PredownloadInput, PredownloadOutput]{
		Name: "rollout/predownload", Budget: 100 * time.Millisecond, MaxResult: 1000,
		Fallback: func(in PredownloadInput) PredownloadOutput {
			h := decision.UndecidedHold("No policy could decide whether images are pulled ahead, so none are; the policies are asked again.", in)
			return PredownloadOutput{Action: Wait, Reason: h.Reason, Message: h.Message}
		},
		Check: func(_ PredownloadInput, out PredownloadOutput) error {
			switch out.Action {
			case Pull, Ignore, Wait:
				return nil
			}
			return fmt.Errorf("action is %q, want %s, %s or %s", out.Action, Pull, Ignore, Wait)
		},
		Lean: func(_ PredownloadInput, then, now PredownloadOutput) decision.Strictness {
			return decision.StrictnessOf(then.Action == Pull && now.Action != Pull, then.Action != Pull && now.Action == Pull)
		},
	}
}

// ToVerdict implements decision.Judged.
func (o PredownloadOutput) ToVerdict() decision.Verdict {
	return decision.Verdict{Word: o.Action, Reasons: []decision.Hold{{Reason: o.Reason, Message: o.Message}}}
}
