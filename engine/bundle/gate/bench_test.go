// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
)

// many is a bundle of 1,000 rules in packages of ten, with two tests for each
// package. n makes it another one.
func many(n int) map[string]string {
	files := map[string]string{}
	for p := range 100 {
		var policy, tests strings.Builder
		fmt.Fprintf(&policy, "package extend.rollout.p%d\n", p)
		for r := range 10 {
			fmt.Fprintf(&policy, "\nhold contains {\"reason\": \"R%d\", \"message\": \"m\"} if {\n\tinput.workload.namespace == \"shop-%d\"\n\tinput.update > %d\n\tnot input.workload.annotations[\"example.com/go\"] == \"yes\"\n}\n", r, p*10+r, n)
		}
		fmt.Fprintf(&tests, "package extend.rollout.p%d_test\n", p)
		for i, update := range []int{n + 1, n} {
			fmt.Fprintf(&tests, "\ntest_it_%d if count(data.extend.rollout.p%d.hold) == %d with input as {\"workload\": {\"namespace\": \"shop-%d\"}, \"update\": %d}\n", i, p, 1-i, p*10, update)
		}
		files[fmt.Sprintf("p%d.rego", p)], files[fmt.Sprintf("p%d_test.rego", p)] = policy.String(), tests.String()
	}
	return files
}

// BenchmarkActivate is all from the files to decisions: 1,000 rules and 200 tests,
// in front of the built-in policies, without replay. In a process of its own it is
// what starting that takes besides.
func BenchmarkActivate(b *testing.B) {
	builtin, err := bundle.ReadBuiltin(os.DirFS("../../../policies"))
	if err != nil {
		b.Fatal(err)
	}
	for _, how := range []string{"in this process", "in a child"} {
		b.Run(how, func(b *testing.B) {
			e, err := engine.FromBundle(builtin)
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			g := gate.New(builtin, gate.WithRunner(runners()[how]))
			spent := map[gate.Stage]float64{}
			n := 0
			for b.Loop() {
				own := user(b, "own", many(n))
				report, err := g.AdmitBundle(b.Context(), own, nil, nil)
				if err != nil || len(report.Tests) != 200 {
					b.Fatal(err, len(report.Tests))
				}
				if err := e.ActivateBundles(b.Context(), bundle.Set{own}); err != nil {
					b.Fatal(err)
				}
				for _, s := range report.Stages {
					spent[s.Stage] += float64(s.Duration.Milliseconds())
				}
				n++
			}
			for stage, ms := range spent {
				b.ReportMetric(ms/float64(n), string(stage)+"-ms")
			}
		})
	}
}
