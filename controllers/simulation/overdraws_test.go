// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/policies"
)

// The judge must find a pod that goes though its budget forbids it. Here no write
// calls the webhooks, and the test writes in place of the controller.
func TestTheJudgeFindsABudgetThatIsOverdrawn(t *testing.T) {
	at, grown := threePods(t, 3)
	remove := func(*corev1.Pod) *corev1.Pod { return nil }
	drained := func(p *corev1.Pod) *corev1.Pod { p.Labels["unavailable-pod.kruise.io/drain"] = ""; return p }
	unready := func(p *corev1.Pod) *corev1.Pod {
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].Status = corev1.ConditionFalse
		}
		return p
	}
	for _, tc := range []struct {
		name   string
		gates  string
		budget func(*policy.PodUnavailableBudgetSpec)
		exempt bool
		write  func(*corev1.Pod) *corev1.Pod
		want   string
	}{
		{"one goes that may not", "", nil, false, remove, "leaves 2 pods of PodUnavailableBudget web available, which wants 3 of 3"},
		{"one goes that may", "", func(s *policy.PodUnavailableBudgetSpec) { s.MaxUnavailable = ptr.To(intstr.FromString("10%")) }, false, remove, ""},
		{"fewer than must be", "", func(s *policy.PodUnavailableBudgetSpec) {
			s.MaxUnavailable, s.MinAvailable = nil, ptr.To(intstr.FromInt32(3))
		}, false, remove, "wants 3 of 3"},
		{"one of a target", "", func(s *policy.PodUnavailableBudgetSpec) {
			s.Selector, s.TargetReference = nil, &policy.TargetReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"}
		}, false, remove, "leaves 2"},
		{"one that is ignored", "", func(s *policy.PodUnavailableBudgetSpec) { s.IgnoredPodSelector = s.Selector }, false, remove, ""},
		{"one that a policy exempts", "", nil, true, remove, ""},
		{"a delete where only updates are protected", "", func(s *policy.PodUnavailableBudgetSpec) {
			s.ProtectOperations = []policy.PubOperation{policy.PubUpdateOperation}
		}, false, remove, ""},
		{"a delete where the gate is off", "PodUnavailableBudgetDeleteGate=false", nil, false, remove, ""},
		{"a delete without webhooks", "PodWebhook=false", nil, false, remove, ""},
		{"a label that calls it unavailable where updates are not protected", "", nil, false, drained, ""},
		{"a label that calls it unavailable", "PodUnavailableBudgetUpdateGate=true", nil, false, drained, "leaves 2"},
		{"the first write of an update in place", "PodUnavailableBudgetUpdateGate=true", nil, false, unready, "leaves 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
			b.Spec = policy.PodUnavailableBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MaxUnavailable: ptr.To(intstr.FromInt32(0))}
			b.Status.TotalReplicas = 3
			if tc.budget != nil {
				tc.budget(&b.Spec)
			}
			gates, err := features.New()
			if err != nil {
				t.Fatal(err)
			}
			if err := gates.Set(tc.gates); err != nil {
				t.Fatal(err)
			}
			f := grown
			f.Budgets = []*policy.PodUnavailableBudget{b}
			s, err := New(policies.Builtin, nil, f, at, WithGates(gates))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			was := f.Pods[0]
			s.judge.RecordDecision(decision.Record{
				Input: protection.BudgetInput{Object: protection.Object{Name: was.Name}}, Output: protection.BudgetOutput{Allow: true, Exempt: tc.exempt},
			})
			now := tc.write(was.DeepCopy())
			s.cluster.objects.setObject(was, nil)
			if now != nil {
				s.cluster.objects.setObject(was, now)
			}
			if got := s.judge.findOverdraw(was, now); got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
