// SPDX-License-Identifier: Apache-2.0

package launchpriority_test

import (
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/launchpriority"
	"github.com/regatta-sh/regatta/policies"
)

// BenchmarkOrder measures one decision about a pod of three containers as the webhook waits for it.
func BenchmarkOrder(b *testing.B) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	in := launchpriority.OrderInput{
		Namespace: "shop", Name: "web-", Annotation: launchpriority.Ordered,
		Containers: []launchpriority.Container{{Name: "proxy", Image: "proxy:1"}, {Name: "main", Image: "web:1"}, {Name: "logs", Image: "logs:1"}},
	}
	b.ReportAllocs()
	for b.Loop() {
		out, record := engine.Decide(b.Context(), e, launchpriority.OrderPoint(), decision.Subject{Kind: "Pod", Namespace: "shop", Name: "web-"}, in)
		if record.Outcome != decision.Decided || len(out.Priorities) != 3 {
			b.Fatalf("%s %s: %+v", record.Outcome, record.Error, out)
		}
	}
}
