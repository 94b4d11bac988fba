// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// TerminationInput asks whether sidecars of a pod end, since its main containers have
// (ST-01, ST-02).
type TerminationInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Namespace of the pod.
	Namespace string `json:"namespace"`
	// Pod is the one with the containers.
	Pod Pod `json:"pod"`
	// Virtual is true where the node has no node agent, so that a sidecar ends by another image.
	Virtual bool `json:"virtual"`
	// RestartPolicy of the pod: Never or OnFailure.
	RestartPolicy string `json:"restartPolicy"`
	// Phase of the pod: Running, Succeeded, Failed or Unknown.
	Phase string `json:"phase"`
	// Containers of the pod, in its order, without init containers.
	Containers []EndingContainer `json:"containers"`
}

// EndingContainer is a container of a pod of which some have ended.
type EndingContainer struct {
	// Name of the container.
	Name string `json:"name"`
	// Image of the container.
	Image string `json:"image"`
	// Sidecar is true with env KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT=true.
	Sidecar bool `json:"sidecar"`
	// IgnoreExitCode is true with env KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE=true.
	IgnoreExitCode bool `json:"ignoreExitCode"`
	// EndImage is the value of env KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE, if it is there.
	EndImage string `json:"endImage,omitempty"`
	// Known is true once the pod reports on the container.
	Known bool `json:"known"`
	// Terminated is true of a container that has ended.
	Terminated bool `json:"terminated"`
	// Ended is true of a container that has ended and is not started again, by its own restart policy and its rules or by that of
	// the pod.
	Ended bool `json:"ended"`
	// ExitCode is that of a container that has ended.
	ExitCode int `json:"exitCode"`
}

// TerminationOutput says which containers end. The clamp in Go ends none of a pod in which
// no other container has ended, and gives no other phase to a pod that has one of its own at
// the end.
type TerminationOutput struct {
	// Stop names containers that the node stops, by a ContainerRecreateRequest.
	Stop []string `json:"stop"`
	// Images are new images of containers of a virtual node.
	Images map[string]string `json:"images"`
	// Phase is what the pod ends with whatever the exit codes of sidecars are: Succeeded or
	// Failed; empty where the exit codes of all containers decide.
	Phase string `json:"phase"`
	// Holds leave all containers running for now. None means go.
	Holds []decision.Hold `json:"holds"`
}

// Phases of a pod that has ended.
const (
	PodSucceeded = "Succeeded"
	PodFailed    = "Failed"
)

// TerminationPoint decides which sidecars end. The manager asks it when containers of a pod
// have ended that is not restarted as a whole, and others still run. Without an answer all
// of them run on.
func TerminationPoint() decision.Point[TerminationInput, TerminationOutput] {
	return decision.Point[TerminationInput, TerminationOutput]{
		Name: "node/termination", Budget: 100 * time.Millisecond, MaxResult: 20_000,
		Fallback: func(TerminationInput) TerminationOutput {
			return TerminationOutput{Images: map[string]string{}, Holds: []decision.Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy could decide which sidecars end, so all of them run on.",
			}}}
		},
		Check: checkTermination,
		Lean: func(in TerminationInput, then, now TerminationOutput) decision.Strictness {
			count := func(o TerminationOutput) int { p := o.ClampAnswer(in); return len(p.Stop) + len(p.Images) }
			return decision.FewerIsStricter(count(then), count(now))
		},
	}
}

func checkTermination(in TerminationInput, out TerminationOutput) error {
	names := map[string]bool{}
	for i := range in.Containers {
		names[in.Containers[i].Name] = true
	}
	for _, name := range out.Stop {
		if !names[name] {
			return fmt.Errorf("stop names container %q, which the pod does not have", name)
		}
	}
	for name, image := range out.Images {
		if !names[name] || image == "" {
			return fmt.Errorf("images has %q for container %q, want the image of a container of the pod", image, name)
		}
	}
	if out.Phase != "" && out.Phase != PodSucceeded && out.Phase != PodFailed {
		return fmt.Errorf("phase is %q, want Succeeded, Failed or nothing", out.Phase)
	}
	for _, h := range out.Holds {
		if h.Reason == "" || h.Message == "" {
			return fmt.Errorf("a hold of rule %s has no reason or no message", h.Rule)
		}
	}
	return nil
}

// ClampAnswer is the answer as far as containers may be ended: the clamp. One that has ended is
// not ended again, and at least one container of the pod has ended by itself.
func (o TerminationOutput) ClampAnswer(in TerminationInput) TerminationOutput {
	out := TerminationOutput{Holds: o.Holds}
	if len(o.Holds) > 0 {
		return out
	}
	running, ended := map[string]bool{}, false
	for i := range in.Containers {
		c := &in.Containers[i]
		running[c.Name] = c.Known && !c.Terminated
		ended = ended || c.Terminated
	}
	if !ended {
		return out
	}
	for _, name := range o.Stop {
		if running[name] && !in.Virtual {
			out.Stop = append(out.Stop, name)
		}
	}
	for i := range in.Containers {
		c := &in.Containers[i]
		if image := o.Images[c.Name]; image != "" && image != c.Image && running[c.Name] && in.Virtual {
			if out.Images == nil {
				out.Images = map[string]string{}
			}
			out.Images[c.Name] = image
		}
	}
	if in.Phase != PodSucceeded && in.Phase != PodFailed {
		out.Phase = o.Phase
	}
	return out
}
