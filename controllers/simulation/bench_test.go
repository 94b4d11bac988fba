package simulation_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
)

// BenchmarkSimulate grows a fleet and moves it a tenth at a time.
func BenchmarkSimulate(b *testing.B) {
	for _, pods := range []int32{50, 500} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f := fleet(b, func(s *kruise.CloneSetSpec) {
					s.Replicas = ptr.To(pods)
					s.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("10%"))
				})
				if r := run(b, f, ""); r.End.How != simulation.Done || r.Waves != 10 {
					b.Fatalf("it ended %s, after %d waves", r.End.How, r.Waves)
				}
			}
		})
	}
}
