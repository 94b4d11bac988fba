// SPDX-License-Identifier: Apache-2.0

// Package lives draws what happens in a life of a workload, for property tests of kinds.
package lives

import (
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/simulation"
)

// faults are what may go wrong with a write. Most go well.
var faults = []simulation.Fault{
	"", "", "", "", "", "", "",
	simulation.LostRace, simulation.LostAnswer, simulation.EndsBefore, simulation.EndsAfter, simulation.Refuses,
}

// Draw lets things happen at random: users do what user draws; kubelets, the cache, others and
// time go on as far as they like; the controller works, and its writes may fail. More are other
// things by name, as of rapid.T.Repeat.
func Draw(t *rapid.T, s *simulation.Life, user func(*rapid.T), more map[string]func(*rapid.T)) {
	d := drawn{s}
	actions := map[string]func(*rapid.T){
		"user": user, "kubelet": d.kubelet, "cache": d.cache, "cache again": d.cache,
		"others": func(*rapid.T) {
			for _, p := range s.Pods() {
				s.Answer(p.Name)
			}
			s.Claims()
		},
		"work":               func(*rapid.T) { s.Work() },
		"work that may fail": d.mayFail,
		"much work while the cache lags": func(t *rapid.T) {
			for range 8 {
				d.kubelet(t)
				d.cache(t)
				s.Work()
			}
		},
		"all is well for a while": func(*rapid.T) { d.allIsWell() },
		"time": func(t *rapid.T) {
			s.Now = s.Now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
		},
	}
	maps.Copy(actions, more)
	t.Repeat(actions)
}

type drawn struct{ *simulation.Life }

// kubelet has some pods take their next step.
func (d drawn) kubelet(t *rapid.T) {
	for _, p := range d.Pods() {
		if rapid.Bool().Draw(t, "for a pod") {
			d.Step(p.Name)
		}
	}
}

// cache shows some of what has happened.
func (d drawn) cache(t *rapid.T) {
	kinds := []client.Object{&corev1.Pod{}, &corev1.Pod{}, nil, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}, d.Current()}
	kind := kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")]
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		d.Show(kind)
	}
}

func (d drawn) mayFail(t *rapid.T) {
	d.Fault = func() simulation.Fault { return rapid.SampledFrom(faults).Draw(t, "fault") }
	d.Work()
	d.Fault = nil
}

func (d drawn) allIsWell() {
	for range 4 {
		for _, p := range d.Pods() {
			d.Step(p.Name)
			d.Answer(p.Name)
		}
		d.ShowAll(nil)
		d.Work()
	}
}
