// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds/adapters"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
)

// threePods are available, and so many of them may be unavailable.
func threePods(t *testing.T, unavailable int32) (time.Time, ClusterState) {
	t.Helper()
	at := time.Date(2026, 12, 21, 10, 0, 0, 0, time.UTC)
	set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	labels := map[string]string{"app": "web"}
	set.Spec = kruise.CloneSetSpec{
		Replicas: ptr.To(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}},
	}
	set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(unavailable))}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: "a"}}}
	grown, err := GrowFleet(t.Context(), policies.Builtin, ClusterState{Workload: set, Kind: adapters.NewFactory(set), Nodes: []*corev1.Node{node}, Room: map[string]int{"n": 3}}, at, 1)
	if err != nil {
		t.Fatal(err)
	}
	return at, grown
}

// The judge must find what a controller would do that is wrong: here the test
// writes in its place.
func TestTheJudgeFindsWhatIsWrong(t *testing.T) {
	at, grown := threePods(t, 1)
	plan := func(holds ...decision.Hold) decision.Record {
		return decision.Record{Output: rollout.PlanOutput{Holds: holds}}
	}
	for _, tc := range []struct {
		name    string
		answers []decision.Record
		deletes int
		want    []string
	}{
		{"one pod goes that may", []decision.Record{plan()}, 1, nil},
		{"one pod goes that no policy was asked about", nil, 1, []string{"Held: is moved, though rollout/plan (NotAsked)"}},
		{"one more goes than may be unavailable", []decision.Record{plan()}, 2, []string{"Promise: leaves 1 pods available, there must be 2"}},
		{"a pod goes while all are held", []decision.Record{plan(decision.Hold{Rule: "x", Reason: "No"})}, 1, []string{"Held: is moved, though x (No)"}},
		{"a pod goes while its zone is held", []decision.Record{plan(decision.Hold{Rule: "x", Reason: "No", Where: map[string]string{"zone": "a"}})}, 1, []string{"Held: is moved, though x (No)"}},
		{"a pod goes while another zone is held", []decision.Record{plan(decision.Hold{Rule: "x", Reason: "No", Where: map[string]string{"zone": "b"}})}, 1, nil},
		{"a pod goes that is held by itself", []decision.Record{plan(), {
			Input:  rollout.RankInput{Pods: []rollout.PodFacts{{Name: grown.Pods[0].Name}}},
			Output: rollout.RankOutput{Holds: []decision.Hold{{Rule: "x", Reason: "No", Pod: grown.Pods[0].Name}}},
		}}, 1, []string{"Held: is moved, though x (No)"}},
		{"a pod goes that is not in the order", []decision.Record{plan(), {Output: rollout.RowsOutput{Order: []string{"web-x"}}}}, 1, []string{"Held: is moved, though rollout/rows (NotInOrder)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := New(policies.Builtin, nil, grown, at)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, r := range tc.answers {
				s.judge.RecordDecision(r)
			}
			for _, p := range grown.Pods[:tc.deletes] {
				if err := s.cluster.cachedClient().Delete(t.Context(), p.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, v := range s.judge.found {
				got = append(got, v.Kind+": "+v.Message)
			}
			if len(got) != len(tc.want) {
				t.Fatalf("want %q, got %q", tc.want, got)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tc.want[i]) {
					t.Errorf("want %q, got %q", tc.want, got)
				}
			}
		})
	}
}
