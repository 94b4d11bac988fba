// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// greedy replaces every point of rollouts by an answer that wants all at once.
const greedy = `package override.rollout

plan := {"limit": 1000, "maxUnavailable": 1000, "holds": [], "scatter": []}

change := {"action": "InPlace", "reason": "Greedy", "message": "Everything goes."}

rank := {
	"keys": [[0] | some _ in input.pods],
	"descending": [],
	"lead": [[0] | some _ in input.pods],
	"holds": [],
}

rows := {"order": array.concat([pod.name | some pod in input.rows], [pod.name | some pod in input.rows])}

scale := {
	"create": 1000, "createCurrent": 0, "delete": 1000, "deleteCurrent": 0,
	"keys": [[0] | some _ in input.pods],
	"then": [[0] | some _ in input.pods],
	"descending": [], "holds": [],
}
`

// A bundle that replaces every decision cannot pass what Go holds them to. The simulated
// cluster judges each write: never more pods unavailable than maxUnavailable, never more
// pods than maxSurge allows, never more updated than the partition lets go.
func TestAnOverrideThatWantsEverythingIsClamped(t *testing.T) {
	e := simEngine(t)
	b, err := bundle.FromFiles("greedy", map[string]string{"greedy.rego": greedy})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Activate(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	server := simServer()
	for name, edit := range map[string]func(*kruise.CloneSet){
		"in place, with a partition": func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(2))
		},
		"recreated": func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
		},
		"with surge": func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
		},
		"created a few at a time": func(set *kruise.CloneSet) {
			set.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, server, e, "greedy"+fmt.Sprint(len(name)), gates{}, simSet(6, func(set *kruise.CloneSet) {
				set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
				edit(set)
			}))
			s.settle()
			s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "1") })
			if name == "with surge" { // it deletes the pods that it creates, and never comes to rest
				for range 100 {
					for _, p := range s.all() {
						s.kubelet(p.Name)
					}
					s.showAll("")
					s.work()
					s.now = s.now.Add(time.Second)
				}
				return
			}
			s.settle()
			want := 6 - int(rolloutPartition(s.set()))
			if got := s.look().Updated; got != want {
				t.Errorf("%d pods are updated, want %d", got, want)
			}
			s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](3) })
			s.settle()
			s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](7) })
			s.settle()
			if got := s.look(); got.Active != 7 || got.Available != 7 {
				t.Errorf("in the end there are %+v, want 7", got)
			}
		})
	}
}

func rolloutPartition(set *kruise.CloneSet) int32 {
	if p := set.Spec.UpdateStrategy.RollingUpdate.Partition; p != nil {
		return p.IntVal
	}
	return 0
}

// A pod whose revision is gone from history stays as it is, though an override wants it
// changed in place: there is nothing to change it by.
func TestAnOverrideCannotChangeAPodOfAnUnknownRevision(t *testing.T) {
	e := simEngine(t)
	b, err := bundle.FromFiles("greedy", map[string]string{"greedy.rego": greedy})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Activate(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	s := newSim(t, simServer(), e, "unknown", gates{}, simSet(2, nil))
	s.settle()
	p := s.all()[0].DeepCopy()
	p.Labels["controller-revision-hash"], p.Labels["pod-template-hash"] = "web-gone", "gone"
	s.update(p)
	s.settle()
	got := s.last["Pod/"+p.Name].(*corev1.Pod)
	if got.UID != p.UID || got.Labels["controller-revision-hash"] != "web-gone" {
		t.Errorf("the pod has labels %v", got.Labels)
	}
}
