// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
)

// BenchmarkSimulate grows a fleet and moves it a tenth at a time: in place, and by
// making other pods where a budget is asked about each that goes.
func BenchmarkSimulate(b *testing.B) {
	for _, pods := range []int32{50, 500} {
		for _, recreated := range []bool{false, true} {
			b.Run(fmt.Sprintf("pods=%d/budget=%v", pods, recreated), func(b *testing.B) {
				tenth := intstr.FromString("10%")
				b.ReportAllocs()
				for b.Loop() {
					f := fleet(b, func(s *kruise.CloneSetSpec) {
						s.Replicas, s.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(pods), &tenth
						if recreated {
							s.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
						}
					})
					if recreated {
						f = budgeted(f, tenth)
					}
					if r := run(b, f, ""); r.End.How != simulation.Done || r.Waves != 10 || len(r.Violations) > 0 {
						b.Fatalf("it ended %s, after %d waves: %v", r.End.How, r.Waves, r.Violations)
					}
				}
			})
		}
	}
}
