// SPDX-License-Identifier: Apache-2.0

// Package lives draws random events in the life of a workload, for property tests of kinds.
package lives

import (
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
)

// faults are the possible faults of a write. Most writes have none.
var faults = []simulation.Fault{
	"", "", "", "", "", "", "",
	simulation.LostRace, simulation.LostAnswer, simulation.EndsBefore, simulation.EndsAfter, simulation.Refuses,
}

// DrawActions makes random events happen. Users do what user draws. Kubelets, the cache, other clients and
// time advance by random amounts. The controller reconciles, and its writes may fail. more are other
// actions by name, as for rapid.T.Repeat.
func DrawActions(t *rapid.T, s *simulation.Harness, user func(*rapid.T), more ...map[string]func(*rapid.T)) {
	d := drawn{s}
	actions := map[string]func(*rapid.T){
		"user": user, "kubelet": d.drawPodSteps, "cache": d.drawCacheEvents, "cache again": d.drawCacheEvents,
		"others": func(*rapid.T) {
			for _, p := range s.ListPods() {
				s.CompleteHooks(p.Name)
			}
			s.CollectClaims()
		},
		"work":               func(*rapid.T) { s.ReconcileIfDue() },
		"work that may fail": d.mayFail,
		"much work while the cache lags": func(t *rapid.T) {
			for range 8 {
				d.drawPodSteps(t)
				d.drawCacheEvents(t)
				s.ReconcileIfDue()
			}
		},
		"all is well for a while": func(*rapid.T) { d.allIsWell() },
		"holds":                   d.drawHold,
		"time": func(t *rapid.T) {
			s.Now = s.Now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
		},
	}
	for _, m := range more {
		maps.Copy(actions, m)
	}
	t.Repeat(actions)
}

// DrawDisruptions are actions beside a rollout, for workloads whose engine has simulation.OverrideRules: holds and failures of
// scaling and of changes, and restarts in place. They are for the last argument of DrawActions.
func DrawDisruptions(l *simulation.Harness) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"holds of scaling and changes": func(t *rapid.T) {
			hold := rapid.SampledFrom([][2]string{
				{}, {}, {simulation.HoldScale, "All"}, {simulation.HoldChange, "Wait"}, {simulation.HoldChange, "Reject"},
				{simulation.HoldFailing, "Scale"}, {simulation.HoldFailing, "Change"},
			}).Draw(t, "hold")
			if hold[0] == "" {
				ReleaseHolds(l)
				return
			}
			annotateWorkload(l, func(all map[string]string) { all[hold[0]] = hold[1] })
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

// DrawBudget protects the pods in one of three tests with a budget that has a low limit and changes at random. The result is for
// the last argument of DrawActions; selector is the selector of the workload. DropBudget ends the protection.
func DrawBudget(t *rapid.T, l *simulation.Harness, selector *metav1.LabelSelector) map[string]func(*rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "the pods have a budget") != 0 {
		return nil
	}
	l.ProtectPods()
	return map[string]func(*rapid.T){
		"budget": func(t *rapid.T) {
			spec := policy.PodUnavailableBudgetSpec{Selector: selector}
			limit := ptr.To(intstr.FromInt32(int32(rapid.IntRange(0, 2).Draw(t, "limit"))))
			switch rapid.SampledFrom([]string{"unavailable", "unavailable", "available", "percent", "some", "none"}).Draw(t, "budget") {
			case "none":
				l.DropBudget()
				return
			case "unavailable":
				spec.MaxUnavailable = limit
			case "available":
				spec.MinAvailable = limit
			case "percent":
				spec.MaxUnavailable = ptr.To(intstr.FromString(rapid.SampledFrom([]string{"0%", "20%", "40%"}).Draw(t, "percentage")))
			case "some":
				spec.MaxUnavailable = limit
				spec.IgnoredPodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{ignored: "yes"}}
				ignoreSome(t, l)
			}
			l.SetBudget(spec)
		},
	}
}

// ignored is the label of pods that a budget may ignore.
const ignored = "ignored"

func ignoreSome(t *rapid.T, l *simulation.Harness) {
	for _, p := range l.ListPods() {
		if p.DeletionTimestamp == nil && rapid.Bool().Draw(t, "the budget leaves a pod out") {
			p = p.DeepCopy()
			p.Labels[ignored] = "yes"
			l.Update(p)
		}
	}
}

// DrawPlacement draws an answer of simulation.PlacementRules, as annotations; sometimes there are none.
func DrawPlacement(t *rapid.T, subsets ...string) map[string]string {
	subset := rapid.SampledFrom(subsets).Draw(t, "subset")
	return rapid.SampledFrom([]map[string]string{
		nil, {simulation.HoldPlacement: "All"}, {simulation.HoldPlacement: subset}, {simulation.DenyPlacement: subset}, {simulation.FailPlacement: "All"},
	}).Draw(t, "placement")
}

type drawn struct{ *simulation.Harness }

// drawPodSteps makes some pods take their next step.
func (d drawn) drawPodSteps(t *rapid.T) {
	for _, p := range d.ListPods() {
		if rapid.Bool().Draw(t, "for a pod") {
			d.StepPod(p.Name)
		}
	}
}

// drawCacheEvents makes the cache show some pending events.
func (d drawn) drawCacheEvents(t *rapid.T) {
	kinds := []client.Object{&corev1.Pod{}, &corev1.Pod{}, nil, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}, d.CurrentWorkload()}
	kind := kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")]
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		d.ShowNext(kind)
	}
}

func (d drawn) mayFail(t *rapid.T) {
	d.Fault = func() simulation.Fault { return rapid.SampledFrom(faults).Draw(t, "fault") }
	d.ReconcileIfDue()
	d.Fault = nil
}

func (d drawn) allIsWell() {
	for range 4 {
		for _, p := range d.ListPods() {
			d.StepPod(p.Name)
			d.CompleteHooks(p.Name)
		}
		d.ShowAll(nil)
		d.ReconcileIfDue()
	}
}

// drawHold adds a hold, or removes all. Only an engine with simulation.HoldRules applies them.
func (d drawn) drawHold(t *rapid.T) {
	kind := rapid.SampledFrom([]string{"", "", simulation.HoldWhole, simulation.HoldWhole, simulation.HoldZone, simulation.HoldPods, simulation.HoldEach, simulation.HoldFailing}).Draw(t, "hold")
	value := ""
	switch kind {
	case "":
		ReleaseHolds(d.Harness)
		return
	case simulation.HoldWhole:
		value = rapid.SampledFrom([]string{"Current", "Current", "Update"}).Draw(t, "new pods")
	case simulation.HoldZone:
		value = rapid.SampledFrom(ZoneNames()).Draw(t, "zone")
	case simulation.HoldPods:
		var names []string
		for _, p := range d.ListPods() {
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
		annotateWorkload(d.Harness, func(all map[string]string) { all[kind] = value })
	}
}

// ReleaseHolds removes all holds.
func ReleaseHolds(l *simulation.Harness) {
	annotateWorkload(l, func(all map[string]string) {
		maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, "holds.test/") })
	})
}

// RelabelPod removes a label from a pod, as a user may, so that its workload loses the pod, or restores the label.
func RelabelPod(t *rapid.T, l *simulation.Harness, key, value string) {
	pods := l.ListPods()
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
	l.ShowAll(p) // the controller cannot know of a user's change before
}

// LabelBack restores a label on the pods that have lost it.
func LabelBack(l *simulation.Harness, key, value string) {
	for _, p := range l.ListPods() {
		if _, ok := p.Labels[key]; !ok && p.DeletionTimestamp == nil {
			p = p.DeepCopy()
			p.Labels[key] = value
			l.Update(p)
		}
	}
}

func annotateWorkload(l *simulation.Harness, edit func(map[string]string)) {
	l.ChangeWorkload(func(o client.Object) {
		all := maps.Clone(o.GetAnnotations())
		if all == nil {
			all = map[string]string{}
		}
		edit(all)
		o.SetAnnotations(all)
	})
}

// ZoneNames are the zones of NewNodes.
func ZoneNames() []string { return []string{"a", "b"} }

// NewNodes returns some nodes, in each of ZoneNames in turn.
func NewNodes(n int) []*corev1.Node {
	out := make([]*corev1.Node, n)
	for i := range out {
		name := fmt.Sprint("n", i+1)
		out[i] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: ZoneNames()[i%len(ZoneNames())],
		}}}
	}
	return out
}
