// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"fmt"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// GuardsInput asks what the API server is to send.
type GuardsInput struct {
	// Gates are the feature gates.
	Gates Gates `json:"gates"`
}

// GuardsOutput is what rules of protection are about. Nothing else ever leaves
// the API server.
type GuardsOutput struct {
	// Kinds are those whose deletion the label policy.kruise.io/delete-protection
	// protects from.
	Kinds []ProtectedKind `json:"kinds"`
	// Guards are what users' rules want to be asked about besides.
	Guards []Guard `json:"guards"`
}

// ProtectedKind is a kind whose objects the label protects.
type ProtectedKind struct {
	// Group of the API, "" for that of pods.
	Group string `json:"group"`
	// Resource in the plural.
	Resource string `json:"resource"`
	// Cascading is what the label's value Cascading is about: replicas, namespace,
	// customresources, or empty where it protects nothing.
	Cascading string `json:"cascading,omitempty"`
}

// Guard selects requests that a user's rule is about.
type Guard struct {
	// Rule is the id of the rule, or its package.
	Rule string `json:"rule,omitempty"`
	// Group of the API, "" for that of pods.
	Group string `json:"group"`
	// Resource in the plural; no wildcard, and never nodes or leases.
	Resource string `json:"resource"`
	// Operations of DELETE and UPDATE; of pods EVICT and RESIZE as well.
	Operations []string `json:"operations"`
	// Namespaces limits it to some; none means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Labels are those that the object must have.
	Labels map[string]string `json:"labels,omitempty"`
	// FailurePolicy is Fail if the API server is to refuse what the guard selects while no manager answers; empty if it is to
	// let it go on, or to do with pods as the installation says.
	FailurePolicy string `json:"failurePolicy,omitempty"`
}

// FailurePolicyFail is the failure policy of a guard that must not fail open. The name is that of admissionregistration.k8s.io.
const FailurePolicyFail = "Fail"

// FailsClosed reports whether what the guard selects is refused while no manager answers.
func (g Guard) FailsClosed() bool { return g.FailurePolicy == FailurePolicyFail }

// GuardsPoint decides which requests the API server asks protection about. The
// manager asks it when policies change, and configures the webhooks accordingly.
// Without an answer the webhooks stay as they are.
func GuardsPoint() decision.Point[GuardsInput, GuardsOutput] {
	return decision.Point[GuardsInput, GuardsOutput]{
		Name: "protection/guards", Budget: time.Second, MaxResult: 100_000, MaxBytes: 1 << 20,
		Fallback: func(GuardsInput) GuardsOutput { return GuardsOutput{} },
		Check:    checkGuards,
		Lean:     leanGuards,
	}
}

// leanGuards: more that is asked about is stricter, since a request that the API
// server does not ask about is never refused. A kind is asked about more where its
// label's value Cascading protects something. A guard is asked about more with
// more operations or namespaces (none means all), and with fewer labels. A guard that
// fails closed is stricter than one that does not.
func leanGuards(_ GuardsInput, then, now GuardsOutput) decision.Strictness {
	kind := func(a, o ProtectedKind) bool {
		return a.Group == o.Group && a.Resource == o.Resource && (o.Cascading == "" || a.Cascading == o.Cascading)
	}
	guard := func(a, o Guard) bool { // of single ones
		if a.Group != o.Group || a.Resource != o.Resource || !slices.Contains(a.Operations, o.Operations[0]) {
			return false
		}
		if len(a.Namespaces) > 0 && (len(o.Namespaces) == 0 || !slices.Contains(a.Namespaces, o.Namespaces[0])) {
			return false
		}
		return decision.IsSubset(a.Labels, o.Labels) && (a.FailsClosed() || !o.FailsClosed())
	}
	old, fresh := splitGuards(then.Guards), splitGuards(now.Guards)
	return decision.CombineStrictness(
		decision.StrictnessOf(!decision.CoversAll(then.Kinds, now.Kinds, kind), !decision.CoversAll(now.Kinds, then.Kinds, kind)),
		decision.StrictnessOf(!decision.CoversAll(old, fresh, guard), !decision.CoversAll(fresh, old, guard)))
}

// splitGuards splits guards into such of one operation and one namespace or all.
func splitGuards(guards []Guard) []Guard {
	var out []Guard
	for _, g := range guards {
		for _, op := range g.Operations {
			one := g
			one.Operations = []string{op}
			if len(g.Namespaces) == 0 {
				out = append(out, one)
			}
			for _, ns := range g.Namespaces {
				one.Namespaces = []string{ns}
				out = append(out, one)
			}
		}
	}
	return out
}

func checkGuards(_ GuardsInput, out GuardsOutput) error {
	for _, k := range out.Kinds {
		if k.Resource == "" {
			return fmt.Errorf("a protected kind has no resource")
		}
		if !slices.Contains([]string{"", CascadeReplicas, CascadeNamespace, CascadeCustomResources}, k.Cascading) {
			return fmt.Errorf("cascading of %s is %q, want %s, %s, %s or nothing", k.Resource, k.Cascading, CascadeReplicas, CascadeNamespace, CascadeCustomResources)
		}
	}
	for _, g := range out.Guards {
		if g.Resource == "" || len(g.Operations) == 0 {
			return fmt.Errorf("a guard of %s needs a resource and operations", g.Rule)
		}
		if g.FailurePolicy != "" && !g.FailsClosed() {
			return fmt.Errorf("failurePolicy of a guard of %s is %q, want %s or nothing", g.Rule, g.FailurePolicy, FailurePolicyFail)
		}
		for _, op := range g.Operations {
			if !slices.Contains([]string{Delete, Evict, Update, Resize}, op) {
				return fmt.Errorf("a guard of %s is of operation %q, want %s, %s, %s or %s", g.Rule, op, Delete, Evict, Update, Resize)
			}
		}
	}
	return nil
}
