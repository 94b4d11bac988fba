// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// LivenessInput asks whether liveness probes of a pod are taken out of it, so that the node
// agent runs them and a failure restarts the container as budgets and rules let it (ELP-01).
type LivenessInput struct {
	// Pod is the pod as it is to be created.
	Pod Pod `json:"pod"`
	// Asked is true with the annotation apps.kruise.io/using-enhanced-liveness: "true".
	Asked bool `json:"asked"`
	// Containers are those that have a liveness probe.
	Containers []LivenessContainer `json:"containers"`
}

// LivenessContainer is a container with a liveness probe.
type LivenessContainer struct {
	// Name of the container.
	Name string `json:"name"`
	// Handler is exec, httpGet, tcpSocket or grpc.
	Handler string `json:"handler"`
	// Supported is true of a probe that the node agent can run: not by gRPC, and not of another host.
	Supported bool `json:"supported"`
	// PeriodSeconds is how often it runs.
	PeriodSeconds int `json:"periodSeconds"`
	// FailureThreshold is how often in a row it fails before the container restarts.
	FailureThreshold int `json:"failureThreshold"`
}

// LivenessOutput says which probes are taken out. The clamp in Go takes out none that the
// node agent cannot run.
type LivenessOutput struct {
	// Take names the containers whose liveness probe the node agent runs.
	Take []string `json:"take"`
}

// LivenessPoint decides whether the node agent runs liveness probes in place of the kubelet.
// The webhook of pods asks it for pods with the annotation. Without an answer the kubelet
// runs them.
func LivenessPoint() decision.Point[LivenessInput, LivenessOutput] {
	return decision.Point[LivenessInput, LivenessOutput]{
		Name: "injection/liveness", Budget: time.Second, MaxResult: 10_000,
		Fallback: func(LivenessInput) LivenessOutput { return LivenessOutput{} },
		Check: func(in LivenessInput, out LivenessOutput) error {
			for _, name := range out.Take {
				if !in.hasContainer(name) {
					return fmt.Errorf("take names container %q, which has no liveness probe", name)
				}
			}
			return nil
		},
		Lean: func(in LivenessInput, then, now LivenessOutput) decision.Strictness {
			return decision.FewerIsStricter(len(then.PermittedProbes(in)), len(now.PermittedProbes(in)))
		},
	}
}

func (in LivenessInput) hasContainer(name string) bool {
	for i := range in.Containers {
		if in.Containers[i].Name == name {
			return true
		}
	}
	return false
}

// PermittedProbes is which probes of an answer are taken out, in the order of the pod: the clamp.
func (o LivenessOutput) PermittedProbes(in LivenessInput) (out []string) {
	wanted := map[string]bool{}
	for _, name := range o.Take {
		wanted[name] = true
	}
	for i := range in.Containers {
		if c := &in.Containers[i]; wanted[c.Name] && c.Supported {
			out = append(out, c.Name)
		}
	}
	return out
}
