// SPDX-License-Identifier: Apache-2.0

package persistence_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/persistence"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/apiserver"
)

func TestPodsThatComeBack(t *testing.T) {
	remembered := func(edit func(*kruise.PersistentPodState)) *kruise.PersistentPodState {
		s := &kruise.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "remember"}}
		s.Spec.TargetReference = kruise.TargetReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "StatefulSet", Name: "db"}
		s.Spec.RequiredPersistentTopology = &kruise.NodeTopologyTerm{Keys: []string{"host", "rack"}}
		s.Spec.PreferredPersistentTopology = []kruise.PreferredTopologyTerm{{Weight: 3, Preference: kruise.NodeTopologyTerm{Keys: []string{"zone"}}}}
		s.Status.PodStates = map[string]kruise.PodState{
			"db-0": {NodeName: "n1", NodeTopologyLabels: map[string]string{"host": "n1", "zone": "a"}},
			"db-1": {NodeName: "n1"},
		}
		if edit != nil {
			edit(s)
		}
		return s
	}
	gone := `package extend.placement.gone
deny contains {"reason": "Gone", "message": "The node is gone.", "target": input.recorded.node} if input.recorded.gone`
	for name, tc := range map[string]struct {
		state *kruise.PersistentPodState
		name  string
		owner string
		kind  string
		rule  string
		// want is the node selector and the annotation.
		want string
	}{
		"where it was":                         {want: "map[disk:ssd host:n1] remember 1"},
		"a pod that is not remembered":         {name: "db-7", want: "map[disk:ssd]  0"},
		"a pod without labels of its node":     {name: "db-1", want: "map[disk:ssd]  0"},
		"another workload":                     {owner: "web", want: "map[disk:ssd]  0"},
		"another kind of workload":             {kind: "CloneSet", want: "map[disk:ssd]  0"},
		"a kind that is not on the white list": {kind: "Squad", state: remembered(func(s *kruise.PersistentPodState) { s.Spec.TargetReference.Kind = "Squad" }), want: "map[disk:ssd]  0"},
		"a kind on the white list":             {kind: "GameServerSet", state: remembered(func(s *kruise.PersistentPodState) { s.Spec.TargetReference.Kind = "GameServerSet" }), want: "map[disk:ssd host:n1] remember 1"},
		"a node that is there, and a rule":     {rule: gone, want: "map[disk:ssd host:n1] remember 1"},
		"a node that is gone":                  {state: remembered(func(s *kruise.PersistentPodState) { move(s, "n9") }), want: "map[disk:ssd host:n1] remember 1"},
		"a node that is gone, and a rule":      {state: remembered(func(s *kruise.PersistentPodState) { move(s, "n9") }), rule: gone, want: "map[disk:ssd]  0"},
		"a rule that fails": {rule: `package extend.placement.x
deny contains {"reason": "R", "message": "m"} if to_number(input.pod.name) > 1`, want: "map[disk:ssd host:n1] remember 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.state == nil {
				tc.state = remembered(nil)
			}
			e, err := engine.New(policies.Builtin, engine.WithPatience(20))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			if tc.rule != "" {
				b, err := bundle.FromFiles("rule", map[string]string{"x.rego": tc.rule})
				if err != nil {
					t.Fatal(err)
				}
				if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
					t.Fatal(err)
				}
			}
			api := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(tc.state,
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-configuration"}, Data: map[string]string{
					"PPS_Watch_Custom_Workload_WhiteList": `{"workloads": [{"Group": "apps.kruise.io", "Version": "v1", "Kind": "GameServerSet"}]}`,
				}}).Build()
			step := persistence.New(persistence.Options{Cached: api, Live: client.Reader(api), Engine: e, Configuration: rules.Configuration{Reader: api, Namespace: "kruise-system"}})
			or := func(text, other string) string {
				if text == "" {
					return other
				}
				return text
			}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: or(tc.name, "db-0"), OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: or(tc.kind, "StatefulSet"), Name: or(tc.owner, "db"), Controller: ptr.To(true),
			}}}}
			p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			changed, err := step.Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "shop"})
			if err != nil {
				t.Fatal(err)
			}
			terms := 0
			if p.Spec.Affinity != nil {
				terms = len(p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
			}
			got := fmt.Sprintf("%v %s %d", p.Spec.NodeSelector, p.Annotations["kruise.io/injected-persistent-pod-state"], terms)
			if got != tc.want || changed != (terms > 0) {
				t.Errorf("got %q, changed %t; want %q", got, changed, tc.want)
			}
		})
	}
}

// move has the pod remembered on another node, with the labels that it had.
func move(s *kruise.PersistentPodState, node string) {
	for name, recorded := range s.Status.PodStates {
		recorded.NodeName = node
		s.Status.PodStates[name] = recorded
	}
}
