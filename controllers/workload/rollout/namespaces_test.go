// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// While the labels of the namespace cannot be read, whatever a rule of users could hold by them is held, at each point that the rule
// takes part in, and the explanation says why. The next round decides again.
func TestAWorkloadWhoseNamespaceLabelsAreMissingIsHeld(t *testing.T) {
	const frozen = `input.workload.namespaceLabels.freeze == "true"`
	long := map[string]string{}
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		for _, d := range "0123456789" {
			long["shop.example/"+strings.Repeat(string(c)+string(d), 10)] = strings.Repeat("x", 60)
		}
	}
	plan := "package extend.rollout.x\n\nhold contains {\"reason\": \"Frozen\", \"message\": \"The namespace is frozen.\"} if " + frozen + "\n"
	rank := "package extend.rollout.x\n\nrank := {pod.name: 1 | some pod in input.pods; " + frozen + "}\n"
	rows := "package override.rollout\n\nimport future.keywords.not\n\nrows := {\"order\": [pod.name | some pod in input.rows]} if not input.plan.workload.namespaceLabels.freeze == \"true\"\n"
	for _, tc := range []struct {
		name, rule string
		labels     map[string]string
		gone       bool // the API server does not have the namespace
		want       string
	}{
		{"a rule of the plan, and no namespace", plan, nil, true, namespaces.UnknownReason},
		{"a rule of the plan, and labels that are too long", plan, long, false, namespaces.TooLongReason},
		{"a rule of the rank, and no namespace", rank, nil, true, namespaces.UnknownReason},
		{"a rule about all candidates, and no namespace", rows, nil, true, namespaces.UnknownReason},
		{"a rule of the plan that holds by a label", plan, map[string]string{"freeze": "true"}, false, "Frozen"},
		{"no rule", "", nil, true, ""},
		{"a rule that does not hold", plan, map[string]string{"freeze": "false"}, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: tc.labels}}
			var bundles bundle.Set
			if tc.rule != "" {
				b, err := bundle.FromFiles("rules", map[string]string{"r.rego": tc.rule})
				if err != nil {
					t.Fatal(err)
				}
				bundles = append(bundles, b)
			}
			kind := &nodeKind{nodes: []string{"n1", "n2"}, of: func(p *corev1.Pod) string { return p.Spec.NodeName }}
			k := newKindCluster(t, kind, bundles, logSet(), namespace)
			for range 3 {
				k.round()
				k.ready()
			}
			if len(k.pods()) == 0 {
				t.Fatal("no pods are created")
			}
			if tc.gone {
				if err := k.api.Delete(t.Context(), namespace); err != nil {
					t.Fatal(err)
				}
			}
			now := &appsv1.DaemonSet{}
			if err := k.api.Get(t.Context(), k.key, now); err != nil {
				t.Fatal(err)
			}
			now.Spec.Template.Spec.Containers[0].Image = "log:2"
			if err := k.api.Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			for range 6 {
				k.round()
				k.ready()
			}
			moved := 0
			for _, p := range k.pods() {
				if image(p) == "log:2" {
					moved++
				}
			}
			if held := tc.want != ""; held != (moved == 0) {
				t.Errorf("%d pods are updated", moved)
			}
			if tc.want == "" {
				return
			}
			a, _ := k.c.Rounds.ExplainWorkload(k.c.typ.GroupKind(), k.key.Namespace, k.key.Name)
			reasons := a.Reason
			for _, pod := range a.Why {
				reasons += " " + pod.Reason
			}
			if !strings.Contains(reasons, tc.want) {
				t.Errorf("the reasons are %q, want %s", reasons, tc.want)
			}
		})
	}
}
