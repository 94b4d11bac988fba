// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	"github.com/regatta-sh/regatta/controllers/sidecarset/marks"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

func started(t *testing.T, rules string, n int, set *kruise.SidecarSet) *world {
	t.Helper()
	w := newWorld(t, rules, append([]client.Object{set}, webs(t, n, set)...)...)
	w.run()
	w.round(set.Name)
	return w
}

func image(name string) func(*kruise.SidecarSet) {
	return func(s *kruise.SidecarSet) { s.Spec.Containers[0].Image = name }
}

func TestImagesAreUpdatedAsTheStrategySays(t *testing.T) {
	for name, tc := range map[string]struct {
		strategy kruise.SidecarSetUpdateStrategy
		rules    string
		once     string // after one round
		end      string
	}{
		"one at a time by default": {kruise.SidecarSetUpdateStrategy{}, "", "logs:1×3 logs:2×1", "logs:2×4"},
		"as many as may be unavailable": {kruise.SidecarSetUpdateStrategy{MaxUnavailable: ptr.To(intstr.FromString("50%"))}, "",
			"logs:1×2 logs:2×2", "logs:2×4"},
		"a partition keeps some": {kruise.SidecarSetUpdateStrategy{Partition: ptr.To(intstr.FromString("75%")), MaxUnavailable: ptr.To(intstr.FromInt32(4))}, "",
			"logs:1×3 logs:2×1", "logs:1×2 logs:2×2"},
		"those that are selected": {kruise.SidecarSetUpdateStrategy{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"n": "2"}}}, "",
			"logs:1×3 logs:2×1", "logs:1×3 logs:2×1"},
		"none while paused":  {kruise.SidecarSetUpdateStrategy{Paused: true}, "", "logs:1×4", "logs:1×4"},
		"none by NotUpdate":  {kruise.SidecarSetUpdateStrategy{Type: kruise.NotUpdateSidecarSetStrategyType}, "", "logs:1×4", "logs:1×4"},
		"none while held":    {kruise.SidecarSetUpdateStrategy{}, "package extend.rollout.x\nhold contains {\"reason\": \"Freeze\", \"message\": \"m\"} if input.workload.kind == \"SidecarSet\"\n", "logs:1×4", "logs:1×4"},
		"none of a pod held": {kruise.SidecarSetUpdateStrategy{}, "package extend.rollout.x\nhold contains {\"reason\": \"R\", \"message\": \"m\", \"pod\": pod.name} if {\n\tsome pod in input.pods\n\tpod.name == \"web-0\"\n}\n", "logs:1×3 logs:2×1", "logs:1×1 logs:2×3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, tc.rules, 4, logs(func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy = tc.strategy }))
			w.edit("logs", image("logs:2"))
			w.round("logs")
			if got := w.images("shipper"); got != tc.once {
				t.Errorf("after a round %s, want %s", got, tc.once)
			}
			w.round("logs") // what was updated does not run yet
			if got := w.images("shipper"); tc.strategy.Partition == nil && got != tc.once {
				t.Errorf("before the new containers run %s, want %s", got, tc.once)
			}
			for range 2 {
				w.run()
				w.round("logs")
			}
			if tc.strategy.Partition == nil {
				for range 4 {
					w.run()
					w.round("logs")
				}
			}
			if got := w.images("shipper"); tc.strategy.Partition == nil && got != tc.end {
				t.Errorf("in the end %s, want %s", got, tc.end)
			}
			if got := w.images("main"); got != "web:1×4" {
				t.Errorf("the pod's own container has %s", got)
			}
		})
	}
}

func TestTheStatusCountsPods(t *testing.T) {
	w := started(t, "", 3, logs(nil))
	s := w.set("logs").Status
	if s.MatchedPods != 3 || s.UpdatedPods != 3 || s.ReadyPods != 3 || s.UpdatedReadyPods != 3 || s.LatestRevision == "" || s.ObservedGeneration != 1 {
		t.Errorf("%+v", s)
	}
	first := s.LatestRevision
	w.edit("logs", image("logs:2"))
	w.round("logs") // one is updated
	w.round("logs") // and is seen to be
	s = w.set("logs").Status
	if s.MatchedPods != 3 || s.UpdatedPods != 1 || s.ReadyPods != 2 || s.UpdatedReadyPods != 0 || s.LatestRevision == first || s.ObservedGeneration != 2 {
		t.Errorf("%+v", s)
	}
	list := &appsv1.ControllerRevisionList{}
	if err := w.api.List(t.Context(), list, client.InNamespace("kruise-system"), client.MatchingLabels{kruise.SidecarSetNameKey: "logs"}); err != nil || len(list.Items) != 2 {
		t.Errorf("%v, %d revisions", err, len(list.Items))
	}
}

func TestRevisionsBeyondTheLimitAreDeletedButForThoseInUse(t *testing.T) {
	w := started(t, "", 1, logs(func(s *kruise.SidecarSet) {
		s.Spec.RevisionHistoryLimit, s.Spec.UpdateStrategy.Paused = ptr.To[int32](2), true
		s.Spec.InjectionStrategy.Revision = &kruise.SidecarSetInjectRevision{CustomVersion: ptr.To("keep")}
	}))
	for i, version := range []string{"keep", "b", "c", "d"} {
		w.edit("logs", func(s *kruise.SidecarSet) {
			s.Spec.Containers[0].Image, s.Spec.CustomVersion = "logs:"+string(rune('2'+i)), version
		})
		w.round("logs")
	}
	list := &appsv1.ControllerRevisionList{}
	if err := w.api.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, r := range list.Items {
		versions = append(versions, r.Labels[kruise.SidecarSetCustomVersionKey])
	}
	slices.Sort(versions)
	if !slices.Equal(versions, []string{"d", "keep"}) {
		t.Errorf("left are %v", versions)
	}
}

func TestMoreThanImagesIsNotUpdatedInPlace(t *testing.T) {
	w := started(t, "", 2, logs(nil))
	w.edit("logs", func(s *kruise.SidecarSet) {
		s.Spec.Containers[0].Image, s.Spec.Containers[0].Command = "logs:2", []string{"sleep"}
	})
	w.round("logs")
	w.round("logs")
	if got := w.images("shipper"); got != "logs:1×2" {
		t.Errorf("the images are %s", got)
	}
	for _, p := range w.pods() {
		c := inplace.Condition(p, kruise.SidecarSetUpgradableCondition)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason != kruise.SidecarSetUpdateImmutableFieldReason || c.Message != `{"logs":false}` {
			t.Errorf("the condition of %s is %+v", p.Name, c)
		}
	}
	if got := w.told(kruise.SidecarSetNotUpgradablePodsReason); len(got) != 1 {
		t.Errorf("events %v", got)
	}
	w.edit("logs", func(s *kruise.SidecarSet) { s.Spec.Containers[0].Command = nil })
	for range 4 {
		w.round("logs")
		w.run()
	}
	if got := w.images("shipper"); got != "logs:2×2" {
		t.Errorf("the images are %s after all", got)
	}
	for _, p := range w.pods() {
		if c := inplace.Condition(p, kruise.SidecarSetUpgradableCondition); c == nil || c.Status != corev1.ConditionTrue || c.Message != `{"logs":true}` {
			t.Errorf("the condition of %s is %+v", p.Name, c)
		}
	}
}

func TestPodsThatWereNotGivenTheContainersDoNotCount(t *testing.T) {
	set := logs(nil)
	objects := append([]client.Object{set}, webs(t, 2, set)...)
	delete(objects[1].GetAnnotations(), kruise.SidecarSetInjectedListKey)
	objects[2].SetLabels(map[string]string{"app": "db"})
	w := newWorld(t, "", objects...)
	w.run()
	w.round("logs")
	if s := w.set("logs").Status; s.MatchedPods != 0 {
		t.Errorf("%+v", s)
	}
}

// Both containers of a pair take turns, and at no time does none of them have the real image.
func TestHotUpgrade(t *testing.T) {
	w := started(t, "", 1, logs(func(s *kruise.SidecarSet) {
		s.Spec.Containers[0].UpgradeStrategy = kruise.SidecarContainerUpgradeStrategy{UpgradeType: kruise.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "empty"}
	}))
	expect := func(when, first, second, working string, ready int32) {
		t.Helper()
		if w.images("shipper-1") != first+"×1" || w.images("shipper-2") != second+"×1" || marks.Working(w.pods()[0])["shipper"] != working {
			t.Errorf("%s: %s, %s, and %v works", when, w.images("shipper-1"), w.images("shipper-2"), marks.Working(w.pods()[0]))
		}
		if got := w.set("logs").Status.ReadyPods; got != ready {
			t.Errorf("%s: %d ready", when, got)
		}
	}
	expect("at first", "logs:1", "empty", "shipper-1", 1)
	w.edit("logs", image("logs:2"))
	version := w.set("logs").ResourceVersion
	w.round("logs")
	w.round("logs")
	expect("while the new one does not run yet", "logs:1", "logs:2", "shipper-2", 0)
	if a := w.pods()[0].Annotations; a["version.sidecarset.kruise.io/shipper-1"] != "1" || a["versionalt.sidecarset.kruise.io/shipper-2"] != "1" ||
		a["versionalt.sidecarset.kruise.io/shipper-1"] != a["version.sidecarset.kruise.io/shipper-2"] || a["version.sidecarset.kruise.io/shipper-2"] < version {
		t.Errorf("the versions are %v, from %s", a, version)
	}
	w.run()
	w.round("logs")
	w.round("logs")
	expect("while the old one is reset", "empty", "logs:2", "shipper-2", 0)
	if got := w.told(kruise.SidecarSetResetContainerSucceededReason); len(got) != 1 {
		t.Errorf("events %v", got)
	}
	w.run()
	w.round("logs")
	expect("when it is done", "empty", "logs:2", "shipper-2", 1)
	if a := w.pods()[0].Annotations; a["version.sidecarset.kruise.io/shipper-1"] != "0" || a["versionalt.sidecarset.kruise.io/shipper-2"] != "0" {
		t.Errorf("the versions are %v", a)
	}
	w.edit("logs", image("logs:3"))
	for range 5 {
		w.round("logs")
		w.run()
	}
	w.round("logs")
	expect("after another one", "logs:3", "empty", "shipper-1", 1)
}

// The webhook of pods names a revision before the controller has made it, by the name that it is going to have.
func TestTheNextRevisionIsNamedBeforeItIsMade(t *testing.T) {
	w := started(t, "", 1, logs(nil))
	first := w.set("logs").Status.LatestRevision
	for _, next := range []string{"logs:2", "logs:3", "logs:1"} {
		w.edit("logs", image(next))
		name, err := history.Latest(t.Context(), w.api, "kruise-system", w.set("logs"))
		if err != nil {
			t.Fatal(err)
		}
		w.round("logs")
		if made := w.set("logs").Status.LatestRevision; made != name || (made == first) != (next == "logs:1") {
			t.Errorf("with %s the revision is %s, and was named %s before; the first was %s", next, made, name, first)
		}
	}
}
