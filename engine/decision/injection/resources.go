// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// ResourcesInput asks what resources a container gets whose resourcesPolicy computes
// them from other containers (SS-08).
type ResourcesInput struct {
	// Pod is the pod as it is to be created.
	Pod Pod `json:"pod"`
	// Set is the SidecarSet of the container.
	Set string `json:"set"`
	// Container is its name in the SidecarSet.
	Container string `json:"container"`
	// Mode is sum or max: how the targets become one number.
	Mode string `json:"mode"`
	// Pattern is the regular expression that selects the targets.
	Pattern string `json:"pattern"`
	// Targets are the names of the containers that it is computed from.
	Targets []string `json:"targets"`
	// Limits are those that the expressions give.
	Limits Computed `json:"limits"`
	// Requests are those that the expressions give.
	Requests Computed `json:"requests"`
}

// Computed is what expressions give; there is nothing where there is no expression.
type Computed struct {
	// CPU is in thousandths of a core.
	CPU *Amount `json:"cpu,omitempty"`
	// Memory is in bytes.
	Memory *Amount `json:"memory,omitempty"`
}

// Amount is the value of one expression.
type Amount struct {
	// Expression as the user wrote it.
	Expression string `json:"expression"`
	// Unlimited is true of a limit that one of the targets does not have.
	Unlimited bool `json:"unlimited"`
	// Value is what the expression gives; 0 where it is unlimited or faulty.
	Value int64 `json:"value"`
	// Fault is what is wrong with the expression, or with its value.
	Fault string `json:"fault,omitempty"`
}

// ResourcesOutput is what the container gets.
type ResourcesOutput struct {
	// Limits that it gets.
	Limits Amounts `json:"limits"`
	// Requests that it gets.
	Requests Amounts `json:"requests"`
	// Refuse says why the pod is not created at all. The pod is created if it is empty.
	Refuse []decision.Hold `json:"refuse"`
}

// Amounts are resources; one that is left out is not set.
type Amounts struct {
	// CPU is in thousandths of a core.
	CPU *int64 `json:"cpu,omitempty"`
	// Memory is in bytes.
	Memory *int64 `json:"memory,omitempty"`
}

// ResourcesPoint decides what resources a container of a SidecarSet gets. The webhook of pods
// asks it for each container that has a resourcesPolicy. Without an answer the pod is
// refused, as it is for a faulty expression.
func ResourcesPoint() decision.Point[ResourcesInput, ResourcesOutput] {
	return decision.Point[ResourcesInput, ResourcesOutput]{
		Name: "injection/resources", Budget: time.Second, MaxResult: 10_000,
		Fallback: func(in ResourcesInput) ResourcesOutput {
			return ResourcesOutput{Refuse: []decision.Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: fmt.Sprintf("No policy decided what resources container %s of SidecarSet %s gets, so the pod is not created. Try again.", in.Container, in.Set),
			}}}
		},
		Check: func(_ ResourcesInput, out ResourcesOutput) error {
			for _, amount := range []*int64{out.Limits.CPU, out.Limits.Memory, out.Requests.CPU, out.Requests.Memory} {
				if amount != nil && *amount < 0 {
					return fmt.Errorf("an amount is %d, want 0 or more", *amount)
				}
			}
			return decision.CheckReasons("refuse", out.Refuse)
		},
		Lean: func(_ ResourcesInput, then, now ResourcesOutput) decision.Strictness {
			refused, refuses := len(then.Refuse) > 0, len(now.Refuse) > 0
			switch {
			case refuses && !refused:
				return decision.Stricter
			case refused && !refuses:
				return decision.Looser
			}
			return decision.Changed
		},
	}
}
