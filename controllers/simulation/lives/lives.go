// SPDX-License-Identifier: Apache-2.0

// Package lives draws what happens in a life of a workload, for property tests of kinds.
package lives

import (
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
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
		"holds":                   d.holds,
		"time": func(t *rapid.T) {
			s.Now = s.Now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
		},
	}
	maps.Copy(actions, more)
	t.Repeat(actions)
}

// DrawDisruptions are what happens beside a rollout to workloads whose engine has simulation.OverrideRules: holds and failures of
// scaling and of changes, and restarts in place. They are for the last argument of Draw.
func DrawDisruptions(l *simulation.Life) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"holds of scaling and changes": func(t *rapid.T) {
			hold := rapid.SampledFrom([][2]string{
				{}, {}, {simulation.HoldScale, "All"}, {simulation.HoldChange, "Wait"}, {simulation.HoldChange, "Reject"},
				{simulation.HoldFailing, "Scale"}, {simulation.HoldFailing, "Change"},
			}).Draw(t, "hold")
			if hold[0] == "" {
				Release(l)
				return
			}
			annotate(l, func(all map[string]string) { all[hold[0]] = hold[1] })
		},
		"restart": func(t *rapid.T) {
			if rapid.IntRange(0, 2).Draw(t, "asked for") == 0 {
				l.AskRestart()
			}
			l.RestartContainers()
			l.ShowAll(&kruise.ContainerRecreateRequest{})
		},
	}
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

// holds has a hold come, or all holds go. Only an engine with simulation.HoldRules holds by it.
func (d drawn) holds(t *rapid.T) {
	kind := rapid.SampledFrom([]string{"", "", simulation.HoldWhole, simulation.HoldWhole, simulation.HoldZone, simulation.HoldPods, simulation.HoldEach, simulation.HoldFailing}).Draw(t, "hold")
	value := ""
	switch kind {
	case "":
		Release(d.Life)
		return
	case simulation.HoldWhole:
		value = rapid.SampledFrom([]string{"Current", "Current", "Update"}).Draw(t, "new pods")
	case simulation.HoldZone:
		value = rapid.SampledFrom(Zones()).Draw(t, "zone")
	case simulation.HoldPods:
		var names []string
		for _, p := range d.Pods() {
			if rapid.Bool().Draw(t, "a pod") {
				names = append(names, p.Name)
			}
		}
		value = strings.Join(names, " ")
	case simulation.HoldEach:
		value = "All"
	case simulation.HoldFailing:
		value = rapid.SampledFrom([]string{"Plan", "Rank"}).Draw(t, "point")
	}
	if value != "" {
		annotate(d.Life, func(all map[string]string) { all[kind] = value })
	}
}

// Release has all holds go.
func Release(l *simulation.Life) {
	annotate(l, func(all map[string]string) {
		maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, "holds.test/") })
	})
}

// Relabel has a user take a label off a pod, so that its workload loses it, or put the value back.
func Relabel(t *rapid.T, l *simulation.Life, key, value string) {
	pods := l.Pods()
	if len(pods) == 0 {
		return
	}
	p := rapid.SampledFrom(pods).Draw(t, "pod").DeepCopy()
	if p.DeletionTimestamp != nil {
		return
	}
	if _, ok := p.Labels[key]; ok {
		delete(p.Labels, key)
	} else {
		p.Labels[key] = value
	}
	l.Update(p)
	l.ShowAll(p) // what a user does, the controller cannot know of before
}

// LabelBack puts a label back onto the pods that have lost it.
func LabelBack(l *simulation.Life, key, value string) {
	for _, p := range l.Pods() {
		if _, ok := p.Labels[key]; !ok && p.DeletionTimestamp == nil {
			p = p.DeepCopy()
			p.Labels[key] = value
			l.Update(p)
		}
	}
}

func annotate(l *simulation.Life, edit func(map[string]string)) {
	l.Change(func(o client.Object) {
		all := maps.Clone(o.GetAnnotations())
		if all == nil {
			all = map[string]string{}
		}
		edit(all)
		o.SetAnnotations(all)
	})
}

// Zones are those of Nodes.
func Zones() []string { return []string{"a", "b"} }

// Nodes are some nodes, in turn in each of Zones.
func Nodes(n int) []*corev1.Node {
	out := make([]*corev1.Node, n)
	for i := range out {
		name := fmt.Sprint("n", i+1)
		out[i] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: Zones()[i%len(Zones())],
		}}}
	}
	return out
}
