// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/simulation/lives"
	"github.com/regatta-sh/regatta/controllers/workload/invariant"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

const simHook = "sim-hook" // the label of lifecycle hooks

// gates are those of CloneSets and those of all workloads.
type gates struct {
	Gates
	common rollout.Gates
}

// life is that of a CloneSet.
type life struct {
	*simulation.Harness
	gates gates
	// released has the instance ids of pods that were.
	released map[string]bool
}

func newLife(t simulation.T, e *engine.Engine, gates gates, set *kruise.CloneSet) *life {
	t.Helper()
	set = set.DeepCopy()
	set.Namespace, set.Name = "shop", "web"
	return &life{gates: gates, released: map[string]bool{}, Harness: simulation.NewHarness(t, simulation.HarnessConfig{
		Workload: set, Kind: func() rollout.Kind { return New(gates.Gates, false) }, Engine: e, Gates: gates.common, Nodes: lives.NewNodes(3),
	})}
}

func (s *life) set() *kruise.CloneSet { return s.CurrentWorkload().(*kruise.CloneSet) }

func (s *life) change(edit func(*kruise.CloneSet)) {
	s.Helper()
	s.ChangeWorkload(func(o client.Object) { edit(o.(*kruise.CloneSet)) })
}

func simTemplate(image, env string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", simHook: "on"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image, Env: []corev1.EnvVar{{Name: "E", Value: env}}}}},
	}
}

func drawSet(t *rapid.T) *kruise.CloneSet {
	number := func(name string, low, high int) *intstr.IntOrString {
		return ptr.To(intstr.FromInt32(int32(rapid.IntRange(low, high).Draw(t, name))))
	}
	set := &kruise.CloneSet{}
	set.Spec = kruise.CloneSetSpec{
		Replicas: ptr.To(int32(rapid.IntRange(1, 6).Draw(t, "replicas"))),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: simTemplate("web:1", "1"),
	}
	ru := &kruise.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: rapid.SampledFrom([]kruise.PodUpdatePolicyType{"ReCreate", "InPlaceIfPossible"}).Draw(t, "policy"),
		MaxUnavailable:  number("maxUnavailable", 0, 3), MaxSurge: number("maxSurge", 0, 2),
	}
	if ru.MaxUnavailable.IntVal == 0 && ru.MaxSurge.IntVal == 0 { // admission refuses it
		ru.MaxUnavailable.IntVal = 1
	}
	if rapid.Bool().Draw(t, "grace period") {
		ru.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 5}
	}
	set.Spec.UpdateStrategy.RollingUpdate = ru
	set.Spec.MinReadySeconds = int32(rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "minReadySeconds"))
	if rapid.Bool().Draw(t, "claims") {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		set.Spec.ScaleStrategy.EnablePVCReuse = rapid.Bool().Draw(t, "reuse")
	}
	if rapid.Bool().Draw(t, "scale limit") {
		set.Spec.ScaleStrategy.MaxUnavailable = number("scaleStrategy.maxUnavailable", 1, 3)
	}
	set.Spec.ScaleStrategy.ExcludePreparingDelete = rapid.Bool().Draw(t, "exclude preparing delete")
	if rapid.Bool().Draw(t, "lifecycle") {
		set.Spec.Lifecycle = drawLifecycle(t)
	}
	return set
}

func drawLifecycle(t *rapid.T) *kruise.Lifecycle {
	l := &kruise.Lifecycle{}
	hook := func(name string) *kruise.LifecycleHook {
		if !rapid.Bool().Draw(t, name) {
			return nil
		}
		return &kruise.LifecycleHook{LabelsHandler: map[string]string{simHook: "on"}, MarkPodNotReady: rapid.Bool().Draw(t, name+" marks")}
	}
	l.PreDelete, l.InPlaceUpdate, l.PreNormal = hook("preDelete"), hook("inPlaceUpdate"), hook("preNormal")
	return l
}

// user does something that users do.
func (s *life) user(t *rapid.T) {
	pod := func() string {
		names := []string{""}
		for _, p := range s.ListPods() {
			names = append(names, p.Name)
		}
		return rapid.SampledFrom(names).Draw(t, "of pod")
	}
	switch act := rapid.SampledFrom([]string{"image", "env", "replicas", "partition", "pause", "podsToDelete", "label", "delete", "release"}).Draw(t, "the user changes"); act {
	case "image", "env":
		image, env := rapid.SampledFrom([]string{"web:1", "web:2", "web:3"}).Draw(t, "image"), s.set().Spec.Template.Spec.Containers[0].Env[0].Value
		if act == "env" {
			env = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "env")
		}
		s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate(image, env) })
	case "replicas":
		n := int32(rapid.IntRange(0, 7).Draw(t, "replicas"))
		s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = &n })
	case "partition":
		p := intstr.FromString(fmt.Sprintf("%d%%", rapid.SampledFrom([]int{0, 0, 30, 50, 100}).Draw(t, "partition")))
		s.change(func(set *kruise.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &p })
	case "pause":
		on := rapid.Bool().Draw(t, "paused")
		s.change(func(set *kruise.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = on })
	case "podsToDelete":
		if name := pod(); name != "" {
			s.change(func(set *kruise.CloneSet) {
				if !slices.Contains(set.Spec.ScaleStrategy.PodsToDelete, name) {
					set.Spec.ScaleStrategy.PodsToDelete = append(set.Spec.ScaleStrategy.PodsToDelete, name)
				}
			})
		}
	case "label", "release":
		if p := s.FindPod(pod()); p != nil && p.DeletionTimestamp == nil {
			p = p.DeepCopy()
			if act == "label" {
				p.Labels[kruise.SpecifiedDeleteKey] = "true"
			} else {
				p.Labels["app"] = "other" // no event reports that it is gone: its claim may stay until another event
				s.released[p.Labels[kruise.CloneSetInstanceIDKey]] = true
			}
			s.Update(p)
			s.ShowAll(&corev1.Pod{}) // what others take away the controller cannot know of before
		}
	case "delete":
		if p := s.FindPod(pod()); p != nil {
			s.Delete(p)
		}
	}
}

// Whatever users do, however far the cache lags behind, whichever writes fail or
// are not answered, and wherever the controller ends and is started again: at
// every write it keeps maxUnavailable, maxSurge and the partition, and in the end
// all is as it was asked for, without anything but events and its own timers to
// wake it.
//
// make test tries the same hundred lives each time; make simulate looks for more.
func TestAnyLifeOfACloneSet(t *testing.T) {
	e := rules.Engine(t, simulation.HoldRules, simulation.OverrideRules)
	rapid.Check(t, func(t *rapid.T) {
		on := rapid.StringMatching("1?2?3?4?").Draw(t, "gates")
		set := drawSet(t)
		gates := gates{common: rollout.Gates{EnvFromMetadata: true}}
		for name, gate := range map[string]*bool{"1": &gates.common.EventOptimization, "2": &gates.PartitionRollback, "3": &gates.PreparingUpdateAsUpdate, "4": &gates.ShortHash} {
			*gate = strings.Contains(on, name)
		}
		s := newLife(t, e, gates, set)
		s.Options = append(s.Options, simulation.WithEveryAgent())
		if rapid.Bool().Draw(t, "short turns") {
			s.Turn = 0
		}
		s.RestartController()
		lives.DrawActions(t, s.Harness, s.user, lives.DrawDisruptions(s.Harness), lives.DrawBudget(t, s.Harness, s.set().Spec.Selector))
		lives.ReleaseHolds(s.Harness)
		s.DropBudget()
		s.EndRestart()
		// Paused, without surge and maxUnavailable, nothing that is asked to go may.
		s.change(func(set *kruise.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = false })
		s.RunUntilStable()
		s.finished()
		s.MustHaveRestarted()
		if set := s.set(); len(set.Spec.VolumeClaimTemplates) > 0 && set.Spec.ScaleStrategy.EnablePVCReuse {
			if pods := s.owned(); len(pods) > 0 {
				s.comesBack(rapid.SampledFrom(pods).Draw(t, "the last to be deleted"), rapid.Bool().Draw(t, "and the controller ends"))
				s.finished()
			}
		}
	})
}

// wantStatus is the status that tells what there is in the end, when every pod is ready
// and available. The revisions are those that the pods show.
func (s *life) wantStatus(got invariant.Observation, strategy points.Strategy) kruise.CloneSetStatus {
	set, n := s.set(), int32(desiredReplicas(s.set()))
	updated := int32(got.Updated)
	newest := &appsv1.ControllerRevision{}
	for _, r := range simulation.ListObjects[*appsv1.ControllerRevision](s.Harness) {
		if r.Revision > newest.Revision {
			newest = r
		}
	}
	out := kruise.CloneSetStatus{
		ObservedGeneration: set.Generation,
		Replicas:           n, ReadyReplicas: n, AvailableReplicas: n,
		UpdatedReplicas: updated, UpdatedReadyReplicas: updated, UpdatedAvailableReplicas: updated,
		ExpectedUpdatedReplicas: n - int32(strategy.Partition),
		UpdateRevision:          newest.Name, CurrentRevision: set.Status.CurrentRevision,
		CollisionCount: ptr.To[int32](0), LabelSelector: "app=web",
	}
	if updated == n { // CS-14
		out.CurrentRevision = newest.Name
	}
	return out
}

// finished fails unless all is as it was asked for.
func (s *life) finished() {
	s.Helper()
	set, got := s.set(), s.CountPods()
	strategy, err := resolveStrategy(set)
	if err != nil {
		s.Fatalf("the strategy: %v", err)
	}
	complain := func(what string, args ...any) {
		s.Helper()
		s.Fatalf("%s%s", fmt.Sprintf(what, args...), s.DescribeState())
	}
	n := desiredReplicas(set)
	if got.Active != n || got.Available != n || got.Going != 0 {
		complain("in the end there are %+v, want %d", got, n)
	}
	if want := n - strategy.Partition; got.Updated < want {
		complain("in the end %d are updated, want %d", got.Updated, want)
	}
	if want := n - strategy.Partition; s.gates.PartitionRollback && !got.Single && got.Updated != want {
		complain("in the end %d are updated, want %d to be and the others to go back", got.Updated, want)
	}
	want, st := s.wantStatus(got, strategy), *set.Status.DeepCopy()
	st.Conditions = nil
	if diff := cmp.Diff(want, st); diff != "" {
		complain("the status is not what there is (-want +got):\n%s", diff)
	}
	if len(set.Spec.ScaleStrategy.PodsToDelete) > 0 {
		complain("podsToDelete is left with %v", set.Spec.ScaleStrategy.PodsToDelete)
	}
	ids := map[string]bool{}
	for _, p := range s.ListPods() {
		if p.DeletionTimestamp == nil {
			ids[p.Labels[kruise.CloneSetInstanceIDKey]] = true
		}
	}
	claims := 0
	for _, c := range simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness) {
		if id := c.Labels[kruise.CloneSetInstanceIDKey]; ids[id] {
			claims++
			if c.DeletionTimestamp != nil {
				complain("the claim %s of a pod that is there is deleted", c.Name)
			}
		} else if !set.Spec.ScaleStrategy.EnablePVCReuse && !s.released[id] {
			complain("the claim %s has no pod", c.Name)
		}
	}
	if len(set.Spec.VolumeClaimTemplates) > 0 && claims != len(ids) {
		complain("%d pods have %d claims", len(ids), claims)
	}
}
