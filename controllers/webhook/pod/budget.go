package pod

import (
	"context"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/ledger"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Budget is the guard of PodUnavailableBudgets, and of users' rules about pods.
type Budget struct {
	Ledger   *ledger.Ledger
	Recent   *protection.Recent
	Reporter *protection.Reporter
	// Deletes is gate PodUnavailableBudgetDeleteGate, Updates is gate
	// PodUnavailableBudgetUpdateGate.
	Deletes, Updates bool
}

// Ask implements Guard.
func (b *Budget) Ask(ctx context.Context, r *Request) admission.Response {
	q := ledger.Question{Asked: r.Asked, Recent: b.Recent.Before(r.Asked), Pod: r.Stored, Aside: b.aside(r)}
	got, err := b.Ledger.Ask(ctx, q)
	if err != nil {
		return b.failed(r, err)
	}
	out := got.Output
	if !out.Allow {
		return b.Reporter.Refuse(r.Asked, got.Record, out.Reasons)
	}
	b.Recent.Went(r.Asked)
	if out.Exempt {
		return b.Reporter.Exempt(r.Asked, got.Record, out.Reasons)
	}
	return b.Reporter.Allow(got.Record, out.Reasons)
}

// aside says whether no budget is concerned. A pod that loses its budget by the
// very change has none (PUB-02).
func (b *Budget) aside(r *Request) bool {
	if !r.changes() {
		return !b.Deletes
	}
	return !b.Updates || r.Harmless || availability.Budget(r.New) == ""
}

// failed refuses: what could not be recorded may not go. An eviction is refused as
// one that may be tried again, since a drain would end at anything else.
func (b *Budget) failed(r *Request, err error) admission.Response {
	if r.Asked.Request.Operation != decision.Evict {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("asking whether the pod may go: %w", err))
	}
	rec := decision.Record{Point: decision.ProtectionBudget().Name, Subject: r.Asked.Subject(), Outcome: decision.Failed, Error: err.Error()}
	return b.Reporter.Refuse(r.Asked, rec, []decision.Hold{{
		Rule: "ledger", Reason: "BudgetUnavailable",
		Message: fmt.Sprintf("podunavailablebudget.policy.kruise.io %q is forbidden: time out, the budget could not be asked, so the pod stays (%v). Try again.", availability.Budget(r.Stored), err),
	}})
}
