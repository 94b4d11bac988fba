// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// TestBudgetIsThatOfTheSpecification compares the policy with PUB-03, written
// once more from top to bottom.
func TestBudgetIsThatOfTheSpecification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawBudget(t)
		out := ask(t, protection.BudgetPoint(), in)
		want := admit(in)
		if out.Allow != want.Allow || out.Record != want.Record || out.Take != want.Take || out.Exempt {
			t.Fatalf("answered %+v, want %+v, to %+v of %+v", out, want, in, in.Budget)
		}
		if got := out.Reasons[0].Reason; got != want.Reasons[0].Reason {
			t.Fatalf("the reason is %s, want %s", got, want.Reasons[0].Reason)
		}
	})
}

func drawBudget(t *rapid.T) protection.BudgetInput {
	rarely := func(name string) bool { return rapid.IntRange(0, 5).Draw(t, name) == 0 }
	few := rapid.IntRange(0, 3)
	operations := rapid.SampledFrom([]string{protection.Delete, protection.Evict, protection.Update, protection.Resize})
	in := protection.BudgetInput{
		Request:        protection.Request{Operation: operations.Draw(t, "operation"), DryRun: rarely("dryRun")},
		Object:         protection.Object{Kind: "Pod", Namespace: "shop", Name: "web-1", Terminating: rarely("terminating")},
		Pod:            protection.PodState{Ready: !rarely("notReady"), Consistent: !rarely("notConsistent"), NoProtect: rarely("noProtect")},
		ResizeIsUpdate: rapid.Bool().Draw(t, "resizeIsUpdate"),
	}
	if rarely("none") {
		return in
	}
	in.Budget = &protection.Budget{
		Name: "web", Ignored: rarely("ignored"), Operations: rapid.SliceOfN(operations, 0, 2).Draw(t, "operations"),
		Desired: few.Draw(t, "desired"), Current: few.Draw(t, "current"), Total: few.Draw(t, "total"), Allowed: rapid.IntRange(-1, 2).Draw(t, "allowed"),
		Records:  rapid.SampledFrom([]int{0, 1, 2000, 2001}).Draw(t, "records"),
		Recorded: rapid.SampledFrom([]string{"", "", protection.RecordDisrupted, protection.RecordUnavailable}).Draw(t, "recorded"),
	}
	return in
}

// admit is PUB-03.
func admit(in protection.BudgetInput) protection.BudgetOutput {
	list := protection.RecordDisrupted
	if b, op := in.Budget, in.Request.Operation; (op == protection.Update || op == protection.Resize) && (b == nil || b.Recorded != protection.RecordDisrupted) {
		list = protection.RecordUnavailable
	}
	because := func(allow bool, record string, take bool, reason string) protection.BudgetOutput {
		return protection.BudgetOutput{Allow: allow, Record: record, Take: take, Reasons: []decision.Hold{{Reason: reason}}}
	}
	b := in.Budget
	switch {
	case in.Object.Terminating:
		return because(true, "", false, "AlreadyTerminating")
	case in.Pod.NoProtect:
		return because(true, "", false, "NoProtect")
	case !in.Pod.Ready:
		return because(true, "", false, "NotReady")
	case !in.Pod.Consistent:
		return because(true, "", false, "NotConsistent")
	case b == nil:
		return because(true, "", false, "NoBudget")
	case b.Ignored:
		return because(true, "", false, "Ignored")
	case b.Desired == 0:
		return because(true, "", false, "NothingDesired")
	}
	protected := b.Operations
	if len(protected) == 0 {
		protected = []string{protection.Delete, protection.Update, protection.Evict}
	}
	if in.ResizeIsUpdate && slices.Contains(protected, protection.Update) {
		protected = append(slices.Clone(protected), protection.Resize)
	}
	switch {
	case !slices.Contains(protected, in.Request.Operation):
		return because(true, "", false, "OperationNotProtected")
	case b.Recorded != "":
		return because(true, list, false, "AlreadyRecorded")
	case b.Allowed <= 0:
		return because(false, "", false, "BudgetExceeded")
	case b.Records > 2000:
		return because(false, "", false, "TooManyRecords")
	}
	return because(true, list, true, "WithinBudget")
}

// protectionHarness gives users' packages as input, as harness does.
const protectionHarness = `package harness

all := [budget, deletion, guards] if {
	budget := data.protection.budget with input as input.budget with data.extend.protection as input.users
	deletion := data.protection.deletion with input as input.deletion with data.extend.protection as input.users
	guards := data.protection.guards with input as input.guards with data.extend.protection as input.users
}`

// TestNothingThatAUserWritesOpensProtection puts any document where denials,
// exemptions, guards and settings should be. All points must still answer,
// within their types; whatever denies must deny, and only what is sound exempts.
func TestNothingThatAUserWritesOpensProtection(t *testing.T) {
	query := harnessed(t, protectionHarness, "data.harness.all")
	request := protection.Request{Operation: protection.Delete, User: protection.User{Name: "web-a", Groups: []string{"zone"}}}
	budget := protection.BudgetInput{
		Request: request, Object: protection.Object{Kind: "Pod", Annotations: map[string]string{"policy.kruise.io/break-glass": "A reason."}},
		Pod: protection.PodState{Ready: true, Consistent: true},
	}
	deletion := protection.DeletionInput{Request: request, Object: protection.Object{Kind: "Secret", Name: "keys"}}
	on := protection.GuardsInput{Gates: protection.Gates{Deletion: true}}
	rapid.Check(t, func(rt *rapid.T) {
		deny, exempt := drawDocument(rt, 3), drawDocument(rt, 3)
		settings := map[string]any{"kinds": drawDocument(rt, 2), "breakGlass": drawDocument(rt, 2)}
		users := map[string]any{"x": map[string]any{"deny": deny, "exempt": exempt, "guard": drawDocument(rt, 3), "settings": settings}}
		set, err := query.Eval(t.Context(), rego.EvalInput(map[string]any{"budget": budget, "deletion": deletion, "guards": on, "users": users}))
		if err != nil || len(set) != 1 {
			rt.Fatalf("no answer to %v: %v", users, err)
		}
		answers := set[0].Expressions[0].Value.([]any)
		pod := typed(t, reflect.TypeFor[protection.BudgetOutput](), answers[0]).(protection.BudgetOutput)
		object := typed(t, reflect.TypeFor[protection.DeletionOutput](), answers[1]).(protection.DeletionOutput)
		guards := typed(t, reflect.TypeFor[protection.GuardsOutput](), answers[2]).(protection.GuardsOutput)
		for _, err := range []error{
			protection.BudgetPoint().Check(budget, pod), protection.DeletionPoint().Check(deletion, object), protection.GuardsPoint().Check(on, guards),
		} {
			if err != nil {
				rt.Fatal(err)
			}
		}
		excused := !empty(deny) && exempts(exempt)
		if pod.Allow != (empty(deny) || excused) || pod.Exempt != excused {
			rt.Fatalf("%v and %v gave %+v", deny, exempt, pod)
		}
		if object.Allow != (empty(deny) || excused) || object.Exempt != excused {
			rt.Fatalf("%v and %v gave %+v", deny, exempt, object)
		}
		if len(guards.Kinds) < 10 || guards.Kinds[2] != (protection.ProtectedKind{Group: "apps", Resource: "deployments", Cascading: protection.CascadeReplicas}) {
			rt.Fatalf("%v gave the kinds %v", settings, guards.Kinds)
		}
	})
}

// exempts reports whether some exemption is one.
func exempts(document any) bool {
	var wishes []any
	switch d := document.(type) {
	case []any:
		wishes = d
	case map[string]any:
		for _, wish := range d {
			wishes = append(wishes, wish)
		}
	}
	return slices.ContainsFunc(wishes, func(wish any) bool {
		object, _ := wish.(map[string]any)
		for field, value := range object {
			if text, _ := value.(string); text == "" || !slices.Contains([]string{"reason", "message", "rule"}, field) {
				return false
			}
		}
		return object["reason"] != nil && object["message"] != nil
	})
}
