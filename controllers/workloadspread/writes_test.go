// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// A request whose time is over while its record is written is refused, and another one comes in its place: the first
// must not keep a place in the subset. Neither must a request whose write took effect without a response.
func TestARefusedPodKeepsNoPlace(t *testing.T) {
	for name, lost := range map[string]error{"late": nil, "response lost": errors.New("connection reset")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *kruise.WorkloadSpread) { s.Spec.Subsets[0].MaxReplicas = ptr.To(intstr.FromInt(1)) })
			ctx, cancel := context.WithCancel(t.Context())
			first := true
			slow := interceptor.NewClient(w.api, interceptor.Funcs{
				SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
					err := c.SubResource(sub).Update(ctx, o, opts...)
					if !first {
						return err
					}
					first = false
					if lost != nil {
						return lost
					}
					cancel()
					time.Sleep(50 * time.Millisecond) // the caller leaves
					return err
				},
			})
			book := spread.NewRecorder(slow, w.api, w.engine, w.targets, spread.ParseVersions(""), spread.WithPace(0))
			create := func(ctx context.Context) (string, error) {
				pod := w.pod()
				pod.Name, pod.GenerateName = "", "web-"
				return w.admit(ctx, book, pod, false)
			}
			if subset, err := create(ctx); err == nil {
				t.Fatalf("the first pod went to %q, want an error", subset)
			}
			if subset, err := create(t.Context()); err != nil || subset != "a" {
				t.Errorf("the second pod went to %q, %v, want a", subset, err)
			}
			if s := w.get().Status.SubsetStatuses[0]; len(s.CreatingPods) != 1 || s.MissingReplicas != 0 {
				t.Errorf("%d records and %d missing, want 1 and 0", len(s.CreatingPods), s.MissingReplicas)
			}
		})
	}
}
