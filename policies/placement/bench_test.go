// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/placement"
	"github.com/regatta-sh/regatta/policies"
)

// BenchmarkDistribution measures placement/distribution as the manager asks it.
func BenchmarkDistribution(b *testing.B) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	for _, namespaces := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(namespaces), func(b *testing.B) {
			in := points.DistributionInput{Distribution: points.Distribution{Name: "ca", Kind: "Secret", Object: "ca"}}
			for i := range namespaces {
				in.Namespaces = append(in.Namespaces, points.Namespace{Name: fmt.Sprintf("ns-%d", i), Labels: map[string]string{"team": "a", "tier": "gold"}})
			}
			b.ReportAllocs()
			for b.Loop() {
				out, _ := engine.Decide(b.Context(), e, points.DistributionPoint(), decision.Subject{Name: "ca"}, in)
				if len(out.Namespaces) != namespaces {
					b.Fatal(len(out.Namespaces), out.Holds)
				}
			}
		})
	}
}
