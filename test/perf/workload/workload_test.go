// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/regatta-sh/regatta/test/perf/watch"
)

func TestReached(t *testing.T) {
	for _, kind := range []Kind{CloneSet(), Deployment(), StatefulSet(), AdvancedStatefulSet(), DaemonSet(), AdvancedDaemonSet()} {
		o := func(observed int64, edit func(map[string]any)) *unstructured.Unstructured {
			s := map[string]any{"observedGeneration": observed}
			for _, f := range []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas",
				"desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable"} {
				s[f] = int64(3)
			}
			edit(s)
			return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(2)}, "status": s}}
		}
		nothing := func(map[string]any) {}
		for _, test := range []struct {
			name   string
			object *unstructured.Unstructured
			want   bool
		}{
			{"all pods are updated and available", o(2, nothing), true},
			{"the status is of an older generation", o(1, nothing), false},
			{"a pod is not available", o(2, func(s map[string]any) { s["availableReplicas"], s["numberAvailable"] = int64(2), int64(2) }), false},
			{"no pod is updated", o(2, func(s map[string]any) { delete(s, "updatedReplicas"); delete(s, "updatedNumberScheduled") }), false},
			{"there is no status", &unstructured.Unstructured{Object: map[string]any{}}, false},
			{"there is no object", nil, false},
		} {
			t.Run(kind.Name+": "+test.name, func(t *testing.T) {
				objects := watch.Objects{}
				if test.object != nil {
					objects[kind.Main.Resource] = test.object
				}
				if got := kind.Reached(objects, 3); got != test.want {
					t.Errorf("got %v", got)
				}
			})
		}
	}
}
