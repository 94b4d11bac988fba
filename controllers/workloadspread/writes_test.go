// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// How often the status is written for pods that are created at once is a matter of time, and not
// of how many there are: each of them is recorded, by ten writes a second at most.
func TestWritesDoNotGrowWithTheCreatesInFlight(t *testing.T) {
	const pace = 100 * time.Millisecond
	for _, creates := range []int{10, 50, 200} {
		w := newWorld(t, func(s *kruise.WorkloadSpread) { s.Spec.Subsets[0].MaxReplicas = ptr.To(intstr.FromInt(1000)) })
		book := spread.NewRecorder(w.api, w.api, w.engine, w.targets, spread.ParseVersions(""), spread.WithPace(pace))
		ready, all := make(chan struct{}), sync.WaitGroup{}
		for range creates {
			pod := w.pod()
			pod.Name, pod.GenerateName = "", "web-"
			all.Go(func() {
				<-ready
				if subset, err := w.admit(t.Context(), book, pod, false); err != nil || subset != "a" {
					t.Errorf("a pod went to %q, %v", subset, err)
				}
			})
		}
		began := time.Now()
		close(ready)
		all.Wait()
		took := time.Since(began)
		if n := len(w.get().Status.SubsetStatuses[0].CreatingPods); n != creates {
			t.Errorf("%d of %d pods are recorded", n, creates)
		}
		t.Logf("%d writes for %d creates at once, in %s", len(w.writes), creates, took.Round(time.Millisecond))
		if most := 2 + int(took/pace); len(w.writes) > most || creates > 10 && len(w.writes) > creates/8 {
			t.Errorf("%d writes for %d creates at once, want at most %d", len(w.writes), creates, most)
		}
	}
}
