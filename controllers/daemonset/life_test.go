// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/simulation/lives"
	_ "github.com/regatta-sh/regatta/test/proptest"
	"github.com/regatta-sh/regatta/test/rules"
)

func drawSet(t *rapid.T) *kruise.DaemonSet {
	return testSet(func(set *kruise.DaemonSet) {
		ru := set.Spec.UpdateStrategy.RollingUpdate
		ru.Type = rapid.SampledFrom([]kruise.RollingUpdateType{kruise.StandardRollingUpdateType, kruise.InPlaceIfPossibleRollingUpdateType}).Draw(t, "type")
		ru.MaxUnavailable = number(int32(rapid.IntRange(0, 3).Draw(t, "maxUnavailable")))
		ru.MaxSurge = number(int32(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "maxSurge")))
		set.Spec.MinReadySeconds = int32(rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "minReadySeconds"))
		if rapid.Bool().Draw(t, "hook") {
			set.Spec.Template.Labels = map[string]string{"app": "log", "hook": "on"}
			set.Spec.Lifecycle = &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}}}
		}
	})
}

// user does something that users, and those who run the nodes, do.
func (w *world) user(t *rapid.T) {
	name := fmt.Sprint("n", rapid.IntRange(1, 4).Draw(t, "node"))
	switch act := rapid.SampledFrom([]string{"image", "env", "partition", "pause", "delete", "fail", "node", "node", "taint", "orphan", "relabel"}).Draw(t, "the user changes"); act {
	case "image":
		w.change(image(rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "image")))
	case "env":
		value := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "env")
		w.change(func(set *kruise.DaemonSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "E", Value: value}}
		})
	case "partition":
		w.change(partition(int32(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "partition"))))
	case "pause":
		on := rapid.Bool().Draw(t, "paused")
		w.change(rolling(func(r *kruise.RollingUpdateDaemonSet) { r.Paused = &on }))
	case "orphan":
		w.OrphanDependents()
	case "relabel":
		lives.RelabelPod(t, w.Harness, "app", "log")
	case "delete", "fail":
		pods := w.ListPods()
		if len(pods) == 0 {
			return
		}
		if p := rapid.SampledFrom(pods).Draw(t, "pod"); act == "delete" {
			w.Delete(p)
		} else if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			w.FailPod(p)
		}
	case "node":
		for _, n := range simulation.ListObjects[*corev1.Node](w.Harness) {
			if n.Name == name {
				w.DropNode(name)
				w.collect(name)
				return
			}
		}
		w.SetNode(w.node(name))
	case "taint":
		for _, n := range simulation.ListObjects[*corev1.Node](w.Harness) {
			if n.Name == name {
				n = n.DeepCopy()
				if n.Spec.Taints = nil; rapid.Bool().Draw(t, "tainted") {
					taint("gpu", rapid.SampledFrom([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}).Draw(t, "effect"))(n)
				}
				w.SetNode(n)
			}
		}
	}
}

// node is one of those that lives have, as it is at first.
func (w *world) node(name string) *corev1.Node {
	for _, n := range lives.NewNodes(4) {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// collect deletes the pods of a node that is gone, as the garbage collector does.
func (w *world) collect(node string) {
	w.Helper()
	for _, p := range w.ListPods() {
		if p.Spec.NodeName == node && p.DeletionTimestamp == nil {
			w.Delete(p)
		}
	}
}

// Whatever users do, nodes come and go, holds come and go, writes fail and the cache lags behind: no write breaks a hold. In the end
// each node that should has one pod, and as many as are to be are updated.
//
// make test tries the same hundred lives each time; make simulate looks for more.
func TestAnyLifeOfADaemonSet(t *testing.T) {
	e := rules.Engine(t, simulation.HoldRules, simulation.OverrideRules)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, e, standard, drawSet(t), lives.NewNodes(rapid.IntRange(1, 4).Draw(t, "nodes"))...)
		w.Options = append(w.Options, simulation.WithEveryAgent())
		w.RestartController()
		lives.DrawActions(t, w.Harness, w.user, lives.DrawDisruptions(w.Harness), lives.DrawBudget(t, w.Harness, w.set().Spec.Selector))
		lives.ReleaseHolds(w.Harness)
		w.DropBudget()
		w.EndRestart()
		lives.LabelBack(w.Harness, "app", "log")
		w.change(rolling(func(r *kruise.RollingUpdateDaemonSet) { r.Paused = nil }))
		w.RunUntilStable()
		w.finished()
		w.MustHaveRestarted()
	})
}

// finished fails unless all is as it was asked for.
func (w *world) finished() {
	w.Helper()
	set, wanted := w.set(), 0
	for _, n := range simulation.ListObjects[*corev1.Node](w.Harness) {
		incrementIf(&wanted, len(n.Spec.Taints) == 0)
	}
	strategy, _ := resolveStrategy(set, wanted)
	s := set.Status
	if got := int(s.DesiredNumberScheduled); got != wanted || int(s.NumberAvailable) != wanted || int(s.UpdatedNumberScheduled) < wanted-strategy.Partition {
		w.Fatalf("in the end %d nodes are to have a pod, and the status is %s%s", wanted, w.status(), w.DescribeState())
	}
	if wanted > 0 && int(s.UpdatedNumberScheduled) == wanted && s.CurrentRevision != w.newest() {
		w.Fatalf("in the end the current revision is %s, want %s%s", s.CurrentRevision, w.newest(), w.DescribeState())
	}
}

func (w *world) newest() string {
	name, number := "", int64(0)
	for _, r := range simulation.ListObjects[*appsv1.ControllerRevision](w.Harness) {
		if r.Revision > number {
			name, number = r.Name, r.Revision
		}
	}
	return name
}
