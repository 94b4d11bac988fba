// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// scale sets the replicas of the CloneSet, and deletes the pods that cost the least, as the controllers of workloads do at once.
func (w *world) scale(replicas int) {
	w.Helper()
	set := &kruise.CloneSet{}
	if err := w.api.Get(w.Context(), w.key, set); err != nil {
		w.Fatal(err)
	}
	set.Spec.Replicas = ptr.To(int32(replicas))
	if err := w.api.Update(w.Context(), set); err != nil {
		w.Fatal(err)
	}
	list := &corev1.PodList{}
	if err := w.api.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	cost := func(pod corev1.Pod) int {
		n, err := strconv.Atoi(pod.Annotations[kruise.PodDeletionCostKey])
		if err != nil {
			w.Fatal(err)
		}
		return n
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Pod) int { return cost(a) - cost(b) })
	for i := range max(len(list.Items)-replicas, 0) {
		if err := w.api.Delete(w.Context(), &list.Items[i]); err != nil {
			w.Fatal(err)
		}
	}
}

// A workload that is scaled in keeps the shares of its subsets, though its controller deletes pods before costs could follow.
func TestScaleInKeepsTheShares(t *testing.T) {
	percent := func(n string) *intstr.IntOrString {
		if n == "" {
			return nil
		}
		return ptr.To(intstr.FromString(n))
	}
	for _, tc := range []struct {
		a, b string
		// want are the pods of both subsets after each scaling, from 10.
		steps []int
		want  []string
	}{
		{"40%", "60%", []int{5, 3, 1}, []string{"2/3", "2/1", "1/0"}},
		{"40%", "60%", []int{5, 10, 7, 4}, []string{"2/3", "4/6", "3/4", "2/2"}},
		{"40%", "", []int{5, 2}, []string{"2/3", "1/1"}},
		{"100%", "", []int{5}, []string{"5/0"}},
	} {
		t.Run(tc.a+" "+tc.b, func(t *testing.T) {
			w := newWorld(t, func(s *kruise.WorkloadSpread) {
				s.Spec.Subsets[0].MaxReplicas, s.Spec.Subsets[1].MaxReplicas = percent(tc.a), percent(tc.b)
			})
			w.create(10, true)
			w.reconcile()
			for i, replicas := range tc.steps {
				w.scale(replicas)
				list := &corev1.PodList{}
				if err := w.api.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				w.reconcile()
				w.create(max(replicas-len(list.Items), 0), true)
				w.reconcile()
				if got := fmt.Sprintf("%d/%d", w.subsets()["a"], w.subsets()["b"]); got != tc.want[i] {
					t.Errorf("with %d replicas the subsets have %s, want %s", replicas, got, tc.want[i])
				}
			}
		})
	}
}

// A pod costs from the beginning what the controller finds, and costs stay as they are when the workload is scaled in.
func TestCostsOfSharesAreWrittenOnce(t *testing.T) {
	w := newWorld(t, func(s *kruise.WorkloadSpread) {
		s.Spec.Subsets[0].MaxReplicas, s.Spec.Subsets[1].MaxReplicas = ptr.To(intstr.FromString("40%")), ptr.To(intstr.FromString("60%"))
	})
	for range 10 {
		w.create(1, true)
		w.now = w.now.Add(1e9)
		w.writes = nil
		w.reconcile()
		if !slices.Equal(w.writes, []string{"status web"}) {
			t.Errorf("after a pod was created written was %v", w.writes)
		}
	}
	w.scale(5)
	w.writes = nil
	w.reconcile()
	if !slices.Equal(w.writes, []string{"status web"}) {
		t.Errorf("after the scale in written was %v", w.writes)
	}
	pod := &corev1.Pod{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-00001"}, pod); err != nil {
		t.Errorf("the first pod is gone: %v", err)
	}
}

// Whatever the percentages are, and however far a workload is scaled in: no pod within the limits goes while another one is beyond
// the limit of its subset. Where limits of several subsets are lower, fewer pods may go than that.
func TestPodsBeyondTheLimitsGoFirstAtScaleIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &kruise.WorkloadSpread{}
		rest, n := 100, rapid.IntRange(1, 4).Draw(t, "subsets")
		for i := range n {
			part := kruise.WorkloadSpreadSubset{Name: fmt.Sprint(i)}
			p := rest
			if i < n-1 {
				p = rapid.IntRange(0, rest).Draw(t, "percent")
			}
			rest -= p
			if i < n-1 || rapid.Bool().Draw(t, "limited") {
				part.MaxReplicas = ptr.To(intstr.FromString(fmt.Sprintf("%d%%", p)))
			}
			w.Spec.Subsets = append(w.Spec.Subsets, part)
		}
		replicas := rapid.IntRange(1, 40).Draw(t, "replicas")
		limit := func(i, replicas int) int {
			if most, err := spread.MaxPods(&w.Spec.Subsets[i], replicas); err == nil && most != nil {
				return *most
			}
			return replicas
		}
		type pod struct{ subset, cost int }
		var pods []pod
		costs := spread.CostsOf(w, replicas)
		before := make([]int, n)
		left := replicas
		for i := range n {
			has := min(left, limit(i, replicas))
			left -= has
			before[i] = has
			for j := range has {
				pods = append(pods, pod{i, costs.CostOf(i, j+1)})
			}
		}
		slices.SortFunc(pods, func(a, b pod) int { return a.cost - b.cost })
		for to := replicas - 1; to >= 0; to-- {
			pods = pods[len(pods)-to:]
			has := make([]int, n)
			for _, p := range pods {
				has[p.subset]++
			}
			var beyond, within []int
			for i := range has {
				if has[i] > limit(i, to) {
					beyond = append(beyond, i)
				}
				if has[i] < min(before[i], limit(i, to)) {
					within = append(within, i)
				}
			}
			if len(beyond) > 0 && len(within) > 0 {
				t.Fatalf("with %d of %d replicas the subsets have %v of %v: pods of %v went, and %v have too many", to, replicas, has, before, within, beyond)
			}
		}
	})
}
