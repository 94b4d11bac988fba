// SPDX-License-Identifier: Apache-2.0

// Package protection has the decision points of protection: whether a pod may become
// unavailable, whether an object may be deleted, and what the API server asks about.
package protection

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Operations that protection is asked about. Eviction is one of its own, though
// it ends in a deletion, and so is a resize, which changes nothing but resources
// that need no restart.
const (
	Delete = "DELETE"
	Evict  = "EVICT"
	Update = "UPDATE"
	Resize = "RESIZE"
)

// Values of the label policy.kruise.io/delete-protection.
const (
	ProtectAlways    = "Always"
	ProtectCascading = "Cascading"
)

// What a deletion takes along, as a kind's guard says it: what is counted before
// an object whose label says Cascading may go.
const (
	// CascadeReplicas are the replicas that its spec asks for.
	CascadeReplicas = "replicas"
	// CascadeNamespace are the pods and the bound volume claims in a namespace.
	CascadeNamespace = "namespace"
	// CascadeCustomResources are the objects of a custom resource definition.
	CascadeCustomResources = "customresources"
)

// Lists of a budget's status that a pod is recorded in.
const (
	RecordDisrupted   = "disruptedPods"
	RecordUnavailable = "unavailablePods"
)

// Request is who asks for what.
type Request struct {
	// UID is that of the admission request.
	UID string `json:"uid"`
	// Operation is DELETE, EVICT, UPDATE or RESIZE.
	Operation string `json:"operation"`
	// DryRun is true when nothing is to be done, only to be tried.
	DryRun bool `json:"dryRun"`
	// User is who asks.
	User User `json:"user"`
}

// User is who sent a request, as the API server knows them.
type User struct {
	// Name of the user.
	Name string `json:"name"`
	// Groups that the user is in.
	Groups []string `json:"groups,omitempty"`
}

// Object is the object of a request, as the API server stores it. Changes that the
// request makes to it do not count.
type Object struct {
	// Group of the API, "" for that of pods.
	Group string `json:"group"`
	// Version of the API.
	Version string `json:"version"`
	// Resource in the plural.
	Resource string `json:"resource"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace it is in; there is none for what is in none.
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// UID of the object.
	UID string `json:"uid"`
	// Created is in nanoseconds since 1970.
	Created int64 `json:"created"`
	// Terminating is true when it is on its way out already.
	Terminating bool `json:"terminating"`
	// Labels of the object; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are those that are not about the object as it was applied.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Owner is the controller of the object, if it has one.
	Owner *Owner `json:"owner,omitempty"`
}

// Owner is a controller, by what its reference says.
type Owner struct {
	// Group of the API.
	Group string `json:"group"`
	// Kind of the owner.
	Kind string `json:"kind"`
	// Name of the owner.
	Name string `json:"name"`
}

// Recent counts what went before the request: what this replica let go, and the
// pods that it saw going, including those that another replica let go.
type Recent struct {
	// Seconds is how long ago the first may have been.
	Seconds int `json:"seconds"`
	// Deletes counts deletions and evictions of objects of the same resource in
	// the same namespace.
	Deletes int `json:"deletes"`
	// UserDeletes counts those of them that the same user asked this replica for.
	UserDeletes int `json:"userDeletes"`
}

// BudgetInput asks whether a pod may become unavailable (PUB-03).
type BudgetInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Request is who asks for what.
	Request Request `json:"request"`
	// Object is the pod, as it is stored.
	Object Object `json:"object"`
	// Recent counts what went before.
	Recent Recent `json:"recent"`
	// Pod is what there is to know of it besides its metadata.
	Pod PodState `json:"pod"`
	// Budget is the one that the pod's annotation names; there is none if it is
	// gone, or if the pod was sent for a rule of a user.
	Budget *Budget `json:"budget,omitempty"`
	// ResizeIsUpdate is true where resources cannot be changed without a restart:
	// who protects from updates protects from that too.
	ResizeIsUpdate bool `json:"resizeIsUpdate"`
}

// PodState is what there is to know of a pod besides its metadata.
type PodState struct {
	// Ready is true when the pod is running, has the condition Ready, is not on
	// its way out, and no label says that it is unavailable.
	Ready bool `json:"ready"`
	// Consistent is true when the containers that run are those of the spec
	// (PUB-05).
	Consistent bool `json:"consistent"`
	// NoProtect is the annotation pub.kruise.io/no-protect.
	NoProtect bool `json:"noProtect"`
}

// Budget is a PodUnavailableBudget, with every percentage resolved to pods.
type Budget struct {
	// Name of the budget.
	Name string `json:"name"`
	// MaxUnavailable is the value as the user wrote it, if not minAvailable.
	MaxUnavailable string `json:"maxUnavailable,omitempty"`
	// MinAvailable is the value as the user wrote it, if not maxUnavailable.
	MinAvailable string `json:"minAvailable,omitempty"`
	// Operations are those it protects from; none means what is usual.
	Operations []string `json:"operations,omitempty"`
	// Ignored is true when ignoredPodSelector selects the pod.
	Ignored bool `json:"ignored"`
	// Desired is how many pods should be available, by its status.
	Desired int `json:"desired"`
	// Current is how many are, by its status.
	Current int `json:"current"`
	// Allowed is how many more may become unavailable, by its status.
	Allowed int `json:"allowed"`
	// Total is how many pods it is about, by its status.
	Total int `json:"total"`
	// Recorded is the list that has the pod, or empty.
	Recorded string `json:"recorded,omitempty"`
	// Records is how many pods both lists have.
	Records int `json:"records"`
}

// BudgetOutput reports whether the pod may become unavailable.
type BudgetOutput struct {
	// Allow is true when the pod may become unavailable.
	Allow bool `json:"allow"`
	// Record is the list to note the pod in, or empty. The manager notes the pod
	// there before it answers that the pod may go.
	Record string `json:"record,omitempty"`
	// Take is true when the pod takes one of those that are allowed.
	Take bool `json:"take,omitempty"`
	// Exempt is true when the request is allowed only because of an exemption.
	Exempt bool `json:"exempt,omitempty"`
	// Reasons say why; there is at least one.
	Reasons []decision.Hold `json:"reasons"`
}

// BudgetPoint decides about pods. The webhook of pods asks it before one is
// deleted, evicted, updated or resized, if a budget protects it or a guard selects
// it. Without an answer a pod stays.
func BudgetPoint() decision.Point[BudgetInput, BudgetOutput] {
	return decision.Point[BudgetInput, BudgetOutput]{
		Name: "protection/budget", Budget: time.Second, MaxResult: 10_000, Exemption: "protection/budget_exempt",
		Fallback: func(in BudgetInput) BudgetOutput {
			return BudgetOutput{Reasons: noDecisionHolds(in.Request, in.Object)}
		},
		Check: func(_ BudgetInput, out BudgetOutput) error {
			if out.Record != "" && out.Record != RecordDisrupted && out.Record != RecordUnavailable {
				return fmt.Errorf("record is %q, want %s, %s or nothing", out.Record, RecordDisrupted, RecordUnavailable)
			}
			return checkReasons(out.Reasons)
		},
		Lean: leanBudget,
	}
}

// leanBudget: a pod that stays is stricter than one that may go by way of
// exception, and that is stricter than one that may go. Of two that may go, the
// stricter takes one of those that are allowed, and is noted in a list: both
// leave less to those who ask next. Why a pod stays is neither.
func leanBudget(_ BudgetInput, then, now BudgetOutput) decision.Strictness {
	if !then.Allow || !now.Allow {
		return decision.FewerIsStricter(freedomLevel(then.Allow, then.Exempt), freedomLevel(now.Allow, now.Exempt))
	}
	noted := func(o BudgetOutput) bool { return o.Record != "" }
	return decision.CombineStrictness(decision.FewerIsStricter(freedomLevel(then.Allow, then.Exempt), freedomLevel(now.Allow, now.Exempt)),
		decision.StrictnessOf(now.Take && !then.Take || noted(now) && !noted(then), then.Take && !now.Take || noted(then) && !noted(now)))
}

// freedomLevel orders rulings: the lower, the stricter.
func freedomLevel(allow, exempt bool) int {
	switch {
	case !allow:
		return 0
	case exempt:
		return 1
	}
	return 2
}

// DeletionInput asks whether an object may be deleted (DP-01), or
// whether a rule of a user refuses something else that is done to it.
type DeletionInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Request is who asks for what.
	Request Request `json:"request"`
	// Object is what it is about, as it is stored.
	Object Object `json:"object"`
	// Recent counts what went before.
	Recent Recent `json:"recent"`
	// Kind is how objects of this kind are protected; there is none if they are
	// only asked about for a rule of a user.
	Kind *ProtectedKind `json:"kind,omitempty"`
	// Replicas are those that the spec of the object asks for, if it says.
	Replicas *int `json:"replicas,omitempty"`
	// Pods are the active pods that a deletion takes along, where they were counted.
	Pods *int `json:"pods,omitempty"`
	// Claims are the bound volume claims that it takes along, where they were counted.
	Claims *int `json:"claims,omitempty"`
	// CustomResources are the objects that it takes along, where they were counted.
	CustomResources *int `json:"customResources,omitempty"`
	// Uncounted says why something could not be counted that should have been.
	Uncounted string `json:"uncounted,omitempty"`
	// Gates are the feature gates.
	Gates Gates `json:"gates"`
}

// Gates are the feature gates that protection depends on.
type Gates struct {
	Deletion     bool `json:"deletion"`     // ResourcesDeletionProtection
	CRDCascading bool `json:"crdCascading"` // DeletionProtectionForCRDCascadingGate
	BudgetDelete bool `json:"budgetDelete"` // PodUnavailableBudgetDeleteGate
	BudgetUpdate bool `json:"budgetUpdate"` // PodUnavailableBudgetUpdateGate
}

// DeletionOutput reports whether the object may be deleted.
type DeletionOutput struct {
	// Allow is true when it may be done.
	Allow bool `json:"allow"`
	// Exempt is true when the request is allowed only because of an exemption.
	Exempt bool `json:"exempt,omitempty"`
	// Reasons say why; there is at least one.
	Reasons []decision.Hold `json:"reasons"`
}

// DeletionPoint decides about objects of any kind but pods. Their webhook
// asks it before one is deleted that has the label policy.kruise.io/delete-protection,
// and whatever is done to one that a guard selects. Without an answer an
// object stays.
func DeletionPoint() decision.Point[DeletionInput, DeletionOutput] {
	return decision.Point[DeletionInput, DeletionOutput]{
		Name: "protection/deletion", Budget: time.Second, MaxResult: 10_000, Exemption: "protection/deletion_exempt",
		Fallback: func(in DeletionInput) DeletionOutput {
			return DeletionOutput{Reasons: noDecisionHolds(in.Request, in.Object)}
		},
		Check: func(_ DeletionInput, out DeletionOutput) error { return checkReasons(out.Reasons) },
		// As with budgets: to stay, by way of exception, to go.
		Lean: func(_ DeletionInput, then, now DeletionOutput) decision.Strictness {
			return decision.FewerIsStricter(freedomLevel(then.Allow, then.Exempt), freedomLevel(now.Allow, now.Exempt))
		},
	}
}

func noDecisionHolds(request Request, object Object) []decision.Hold {
	return []decision.Hold{{
		Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
		Message: fmt.Sprintf("No policy could decide about %s of %s %s, so it stays. Try again, and ask the platform team if that does not help.", request.Operation, object.Kind, object.Name),
	}}
}

func checkReasons(reasons []decision.Hold) error {
	if len(reasons) == 0 {
		return fmt.Errorf("there are no reasons")
	}
	return decision.CheckReasons("reasons", reasons)
}

// SetDefaultRules implements Originated.
func (o *BudgetOutput) SetDefaultRules(pkg string) { decision.SetDefaultRules(o.Reasons, pkg) }

// SetDefaultRules implements Originated.
func (o *DeletionOutput) SetDefaultRules(pkg string) { decision.SetDefaultRules(o.Reasons, pkg) }

// Words of the verdicts of protection.
const (
	Allowed  = "Allow"
	Denied   = "Deny"
	Exempted = "Exempt"
)

// ToVerdict implements Judged.
func (o BudgetOutput) ToVerdict() decision.Verdict {
	return rulingVerdict(o.Allow, o.Exempt, o.Reasons)
}

// ToVerdict implements Judged.
func (o DeletionOutput) ToVerdict() decision.Verdict {
	return rulingVerdict(o.Allow, o.Exempt, o.Reasons)
}

func rulingVerdict(allow, exempt bool, reasons []decision.Hold) decision.Verdict {
	switch {
	case exempt:
		return decision.Verdict{Word: Exempted, Reasons: reasons}
	case allow:
		return decision.Verdict{Word: Allowed, Reasons: reasons}
	}
	return decision.Verdict{Word: Denied, Reasons: reasons}
}
