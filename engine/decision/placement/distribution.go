// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// DistributionInput asks which namespaces have a copy of the object of a
// ResourceDistribution (RD-01).
type DistributionInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Distribution is the ResourceDistribution.
	Distribution Distribution `json:"distribution"`
	// Namespaces are those that the spec asks for, by name. A namespace that the spec
	// names need not exist.
	Namespaces []Namespace `json:"namespaces"`
}

// Distribution is a ResourceDistribution. What the object contains is no fact: it may be
// secret.
type Distribution struct {
	// Name of the ResourceDistribution.
	Name string `json:"name"`
	// Labels of the ResourceDistribution; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the ResourceDistribution; there are none if it has none.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Kind of the object: Secret or ConfigMap.
	Kind string `json:"kind"`
	// Object is the name of the object.
	Object string `json:"object"`
}

// Namespace is one that a ResourceDistribution asks for.
type Namespace struct {
	// Name of the namespace.
	Name string `json:"name"`
	// Labels of the namespace; there are none if it has none or is missing.
	Labels map[string]string `json:"labels,omitempty"`
	// Missing is true when the namespace does not exist or is terminating.
	Missing bool `json:"missing,omitempty"`
	// Excluded is true when the spec leaves the namespace out again.
	Excluded bool `json:"excluded,omitempty"`
}

// DistributionOutput says which namespaces have a copy. The clamp in Go leaves out those
// that the spec does not ask for and those that are denied, whatever it says.
type DistributionOutput struct {
	// Namespaces names those that have a copy.
	Namespaces []string `json:"namespaces"`
	// Holds leave all copies as they are for now. None means go.
	Holds []decision.Hold `json:"holds"`
	// Denials are of namespaces that have no copy, though the spec asks for one.
	Denials []Denial `json:"denials"`
}

// DistributionPoint decides which namespaces have a copy. The manager asks it when a
// ResourceDistribution or a namespace changes. Without an answer no copy is created, changed
// or deleted.
func DistributionPoint() decision.Point[DistributionInput, DistributionOutput] {
	return decision.Point[DistributionInput, DistributionOutput]{
		Name: "placement/distribution", Budget: time.Second, MaxResult: 100_000,
		Fallback: func(DistributionInput) DistributionOutput {
			return DistributionOutput{Holds: noDecision("No policy could decide which namespaces have a copy, so all copies stay as they are.")}
		},
		Check: checkDistribution,
		Lean:  leanDistribution,
	}
}

func checkDistribution(in DistributionInput, out DistributionOutput) error {
	asked := map[string]bool{}
	for _, ns := range in.Namespaces {
		asked[ns.Name] = true
	}
	for _, name := range out.Namespaces {
		if !asked[name] {
			return fmt.Errorf("namespaces has %q, which the ResourceDistribution does not ask for", name)
		}
	}
	for _, d := range out.Denials {
		if d.Reason == "" || d.Message == "" {
			return fmt.Errorf("a denial of rule %s has no reason or no message", d.Rule)
		}
	}
	return nil
}

// PermittedNamespaces is which namespaces of an answer have a copy, by name: the clamp.
func (o DistributionOutput) PermittedNamespaces(in DistributionInput) []string {
	wanted := map[string]bool{}
	for _, name := range o.Namespaces {
		wanted[name] = true
	}
	var out []string
	for _, ns := range in.Namespaces {
		if wanted[ns.Name] && !ns.Excluded && findDenial(o.Denials, ns.Name) == nil {
			out = append(out, ns.Name)
		}
	}
	slices.Sort(out)
	return out
}

// DeniedNamespaces is why namespaces that the spec asks for have no copy, by name.
func (o DistributionOutput) DeniedNamespaces(in DistributionInput) map[string]Denial {
	out := map[string]Denial{}
	for _, ns := range in.Namespaces {
		if d := findDenial(o.Denials, ns.Name); d != nil && !ns.Excluded {
			out[ns.Name] = *d
		}
	}
	return out
}

// leanDistribution: a hold is stricter, and so are fewer copies.
func leanDistribution(in DistributionInput, then, now DistributionOutput) decision.Strictness {
	return decision.CombineStrictness(
		decision.FewerIsStricter(len(then.PermittedNamespaces(in)), len(now.PermittedNamespaces(in))),
		decision.FewerIsStricter(-min(len(then.Holds), 1), -min(len(now.Holds), 1)))
}
