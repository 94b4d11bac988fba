// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// greedy replaces every point of rollouts by an answer that wants all at once, the lowest
// ordinals first.
const greedy = `package override.rollout

plan := {"limit": 1000, "maxUnavailable": 1000, "holds": [], "scatter": []}

change := {"action": "Recreate", "reason": "Greedy", "message": "All at once."}

rank := {
	"keys": [[pod.ordinal] | some pod in input.pods],
	"descending": [],
	"lead": [[0] | some _ in input.pods],
	"holds": [],
}

scale := {
	"create": 1000, "createCurrent": 0, "delete": 1000, "deleteCurrent": 0,
	"keep": [], "planned": "All",
	"keys": [[pod.ordinal] | some pod in input.pods],
	"then": [[0] | some _ in input.pods],
	"descending": [], "holds": [],
}
`

// A bundle that replaces every decision moves no pod below the partition and none while as
// many are unavailable as may be, and has OrderedReady create and delete in order, one at a
// time.
func TestAnOverrideThatWantsEverythingIsClamped(t *testing.T) {
	e := testEngine(t)
	b, err := bundle.FromFiles("greedy", map[string]string{"greedy.rego": greedy})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, e, Gates{}, testSet(4, func(set *kruise.StatefulSet) {
		set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2)
	}))
	w.settle()
	if got, want := w.did(), "+db-0=db:1 +db-1=db:1 +db-2=db:1 +db-3=db:1"; got != want {
		t.Errorf("first it did %s, want %s", got, want)
	}
	w.change(image("2"))
	w.settle()
	if got, want := w.did(), "-db-2 +db-2=db:2 -db-3 +db-3=db:2"; got != want {
		t.Errorf("then it did %s, want %s", got, want)
	}
	w.broken["db:1"] = true // the pods that stay become unhealthy
	w.kubelet()
	w.change(func(set *kruise.StatefulSet) { set.Spec.Replicas = ptr.To[int32](2) })
	w.settle()
	if got := w.did(); got != "" {
		t.Errorf("while lower pods are not ready it did %s", got)
	}
	delete(w.broken, "db:1")
	w.settle()
	if got, want := w.did(), "-db-3 -db-2"; got != want {
		t.Errorf("at last it did %s, want %s", got, want)
	}
}
