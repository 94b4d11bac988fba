// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is the life of a DaemonSet, of which it is noted what happens on each node.
type world struct {
	*simulation.Harness
	// broken are images that never become ready.
	broken map[string]bool
	seen   map[string]string // names of pods to what is noted of them
	wrote  []string
	images map[string]string // of pods, by name
	// most is how many running pods any node had at once.
	most int
	// lost is how many nodes were without an available pod at once, since all had one.
	lost int
	full bool
}

func testEngine(t testing.TB) *engine.Engine {
	t.Helper()
	return rules.Engine(t, "")
}

func testNode(name string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func testSet(edits ...func(*kruise.DaemonSet)) *kruise.DaemonSet {
	labels := map[string]string{"app": "log"}
	set := &kruise.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "log", Namespace: "shop", UID: "set", Generation: 1},
		Spec: kruise.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "log:1"}}},
			},
			UpdateStrategy: kruise.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &kruise.RollingUpdateDaemonSet{}},
		},
	}
	for _, edit := range edits {
		edit(set)
	}
	return set
}

func rolling(edit func(*kruise.RollingUpdateDaemonSet)) func(*kruise.DaemonSet) {
	return func(set *kruise.DaemonSet) { edit(set.Spec.UpdateStrategy.RollingUpdate) }
}

func image(tag string) func(*kruise.DaemonSet) {
	return func(set *kruise.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = "log:" + tag }
}

func number(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }

func maxUnavailable(n int32) func(*kruise.DaemonSet) {
	return rolling(func(r *kruise.RollingUpdateDaemonSet) { r.MaxUnavailable = number(n) })
}

func surge(n int32) func(*kruise.DaemonSet) {
	return rolling(func(r *kruise.RollingUpdateDaemonSet) { r.MaxSurge, r.MaxUnavailable = number(n), number(0) })
}

func partition(n int32) func(*kruise.DaemonSet) {
	return rolling(func(r *kruise.RollingUpdateDaemonSet) { r.Partition = number(n) })
}

func inPlace(set *kruise.DaemonSet) {
	set.Spec.UpdateStrategy.RollingUpdate.Type = kruise.InPlaceIfPossibleRollingUpdateType
}

func newWorld(t simulation.T, e *engine.Engine, k func() *Kind, set *kruise.DaemonSet, nodes ...*corev1.Node) *world {
	t.Helper()
	return &world{
		broken: map[string]bool{}, seen: map[string]string{}, images: map[string]string{},
		Harness: simulation.NewHarness(t, simulation.HarnessConfig{Workload: set, Nodes: nodes, Kind: func() rollout.Kind { return k() }, Engine: e}),
	}
}

func standard() *Kind { return New(Gates{}, true) }

func (w *world) set() *kruise.DaemonSet { return w.CurrentWorkload().(*kruise.DaemonSet) }

func (w *world) change(edits ...func(*kruise.DaemonSet)) {
	w.Helper()
	w.ChangeWorkload(func(o client.Object) {
		for _, edit := range edits {
			edit(o.(*kruise.DaemonSet))
		}
	})
}

// note notes what happened to pods since the last time: "+n1=2" and "-n1=1", by the node and
// the tag of the image, and "~n1=2" for a change in place.
func (w *world) note() {
	now, running, available := map[string]string{}, map[string]int{}, map[string]bool{}
	for _, p := range w.ListPods() {
		tag := strings.TrimPrefix(p.Spec.Containers[0].Image, "log:")
		now[p.Name] = nodefit.NodeOf(p) + "=" + tag
		if p.DeletionTimestamp != nil {
			now[p.Name] = "" // it goes
		}
		if p.Spec.NodeName != "" && p.Status.Phase == corev1.PodRunning {
			running[p.Spec.NodeName]++
			w.most = max(w.most, running[p.Spec.NodeName])
			if c := inplace.FindCondition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
				available[p.Spec.NodeName] = true
			}
		}
	}
	if nodes := len(simulation.ListObjects[*corev1.Node](w.Harness)); len(available) == nodes {
		w.full = true
	} else if w.full {
		w.lost = max(w.lost, nodes-len(available))
	}
	var gone, changed, came []string
	for _, name := range slices.Sorted(maps.Keys(w.seen)) {
		switch was, is := w.seen[name], now[name]; {
		case is == "":
			gone = append(gone, "-"+was)
			delete(w.seen, name)
		case is != was:
			changed = append(changed, "~"+is)
			w.seen[name] = is
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, known := w.seen[name]; !known && now[name] != "" {
			came = append(came, "+"+now[name])
			w.seen[name] = now[name]
		}
	}
	for _, what := range [][]string{gone, changed, came} {
		slices.Sort(what)
		w.wrote = append(w.wrote, what...)
	}
}

// settle lets everything happen, one round and one step of each pod at a time.
func (w *world) settle() {
	w.Helper()
	w.settleWithin(time.Hour)
}

// settleWithin lets everything happen that does in some time.
func (w *world) settleWithin(d time.Duration) {
	w.Helper()
	end := w.Now.Add(d)
	for range 400 {
		did := false
		for _, p := range w.ListPods() {
			if w.broken[p.Spec.Containers[0].Image] && p.DeletionTimestamp == nil && p.Spec.NodeName != "" && len(p.Status.ContainerStatuses) > 0 {
				continue
			}
			did = w.StepPod(p.Name) || did
			did = w.CompleteHooks(p.Name) || did
		}
		w.note()
		w.ShowAll(nil)
		did = w.ReconcileIfDue() || did
		w.note()
		if did {
			continue
		}
		if w.Timer.IsZero() || w.Timer.After(end) {
			return
		}
		w.Now = w.Timer
	}
	w.Fatalf("it never comes to rest: %v", w.wrote)
}

// did is what happened to pods since the last call.
func (w *world) did() string {
	out := strings.Join(w.wrote, " ")
	w.wrote = nil
	return out
}

func (w *world) status() string {
	s := w.set().Status
	return fmt.Sprintf("desired %d current %d ready %d updated %d available %d unavailable %d misscheduled %d", s.DesiredNumberScheduled,
		s.CurrentNumberScheduled, s.NumberReady, s.UpdatedNumberScheduled, s.NumberAvailable, s.NumberUnavailable, s.NumberMisscheduled)
}
