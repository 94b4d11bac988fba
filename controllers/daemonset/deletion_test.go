// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/test/rules"
)

// What rollout/scale answers on deletions is heeded: pods on nodes that must not run one any more go as it says.
func TestDeletionsOfADaemonSetAreAskedAbout(t *testing.T) {
	override := "package override.rollout\n\n"
	for name, tc := range map[string]struct {
		rules string
		want  string
	}{
		"the built-in policy deletes them":    {"", "-n1=1 -n2=1"},
		"a policy of the platform keeps them": {override + "scale := object.union(data.rollout.scale, {\"delete\": 0, \"planned\": \"None\"})\n", ""},
		"a policy of the platform deletes the first of them": {
			override + "scale := object.union(data.rollout.scale, {\"delete\": count([1 | input.counts.total == 2; input.down > 0])})\n", "-n1=1",
		},
		"a policy that fails deletes none": {override + "scale := object.union(data.rollout.scale, {\"delete\": to_number(\"x\")}) if input.down > 0\n\nscale := data.rollout.scale if input.down == 0\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules.Engine(t, tc.rules), standard, testSet(), testNode("n1"), testNode("n2"))
			w.settle()
			w.did()
			for _, n := range simulation.ListObjects[*corev1.Node](w.Harness) {
				n = n.DeepCopy()
				taint("gone", corev1.TaintEffectNoExecute)(n)
				w.SetNode(n)
			}
			for range 8 {
				w.ShowAll(nil)
				w.ReconcileIfDue()
				for _, p := range w.ListPods() {
					if p.DeletionTimestamp != nil {
						w.StepPod(p.Name)
					}
				}
				w.note()
			}
			if got := w.did(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
