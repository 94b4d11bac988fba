// SPDX-License-Identifier: Apache-2.0

package protection_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/policies"
)

// denials are how many rules users have, of which none denies.
var denials = []int{0, 10, 1000}

// BenchmarkBudget measures one decision about a pod as a webhook waits for it:
// with facts, the evaluation and the answer.
func BenchmarkBudget(b *testing.B) {
	within := points.BudgetInput{
		Request: points.Request{UID: "r1", Operation: points.Delete, User: points.User{Name: "ann", Groups: []string{"dev", "system:authenticated"}}},
		Object: points.Object{
			Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "p1",
			Labels: map[string]string{"app": "web", "tier": "gold"}, Owner: &points.Owner{Group: "apps.kruise.io", Kind: "CloneSet", Name: "web"},
		},
		Pod:    points.PodState{Ready: true, Consistent: true},
		Budget: &points.Budget{Name: "web", MaxUnavailable: "20%", Desired: 8, Current: 10, Allowed: 2, Total: 10},
	}
	exceeded := within
	exceeded.Budget = &points.Budget{Name: "web", MaxUnavailable: "20%", Desired: 8, Current: 8, Total: 10}
	for _, n := range denials {
		b.Run(fmt.Sprintf("allowed/denials=%d", n), func(b *testing.B) { measure(b, n, points.BudgetPoint(), within, true) })
		b.Run(fmt.Sprintf("denied/denials=%d", n), func(b *testing.B) { measure(b, n, points.BudgetPoint(), exceeded, false) })
	}
}

// BenchmarkDeletion measures one decision about a workload.
func BenchmarkDeletion(b *testing.B) {
	replicas := 3
	kept := points.DeletionInput{
		Request:  points.Request{UID: "r1", Operation: points.Delete, User: points.User{Name: "ann", Groups: []string{"dev", "system:authenticated"}}},
		Object:   points.Object{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "d1", Labels: map[string]string{"policy.kruise.io/delete-protection": points.ProtectCascading}},
		Kind:     &points.ProtectedKind{Group: "apps", Resource: "deployments", Cascading: points.CascadeReplicas},
		Replicas: &replicas,
		Gates:    points.Gates{Deletion: true},
	}
	none := 0
	empty := kept
	empty.Replicas = &none
	for _, n := range denials {
		b.Run(fmt.Sprintf("allowed/denials=%d", n), func(b *testing.B) { measure(b, n, points.DeletionPoint(), empty, true) })
		b.Run(fmt.Sprintf("denied/denials=%d", n), func(b *testing.B) { measure(b, n, points.DeletionPoint(), kept, false) })
	}
}

// judged are the answers that allow or do not.
type judged interface{ ToVerdict() decision.Verdict }

func measure[In any, Out judged](b *testing.B, denials int, point decision.Point[In, Out], in In, allowed bool) {
	b.Helper()
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	if err := e.ActivateBundles(b.Context(), users(b, denials)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		out, record := engine.Decide(context.Background(), e, point, decision.Subject{Kind: "Object", Namespace: "shop", Name: "web"}, in)
		if record.Outcome != decision.Decided || (out.ToVerdict().Word == points.Allowed) != allowed {
			b.Fatalf("%s %s: %+v", record.Outcome, record.Error, out)
		}
	}
}

// users have rules in packages of ten.
func users(b *testing.B, denials int) bundle.Set {
	b.Helper()
	files := map[string]string{}
	for i := 0; i < denials; i += 10 {
		var text strings.Builder
		fmt.Fprintf(&text, "package extend.protection.p%d\n", i)
		for j := range 10 {
			fmt.Fprintf(&text, "deny contains {\"reason\": \"R\", \"message\": \"m\"} if {\n\tinput.object.namespace == \"shop-%d\"\n\tinput.recent.deletes > 20\n}\n", i+j)
		}
		files[fmt.Sprintf("p%d.rego", i)] = text.String()
	}
	if len(files) == 0 {
		return nil
	}
	set, err := bundle.FromFiles("users", files)
	if err != nil {
		b.Fatal(err)
	}
	return bundle.Set{set}
}
