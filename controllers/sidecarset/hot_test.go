// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// hotLogs is a SidecarSet of a hot pair and of an agent beside it.
func hotLogs() *kruise.SidecarSet {
	return logs(func(s *kruise.SidecarSet) {
		s.Spec.Containers[0].UpgradeStrategy = kruise.SidecarContainerUpgradeStrategy{UpgradeType: kruise.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "empty"}
		s.Spec.Containers = append(s.Spec.Containers, kruise.SidecarContainer{Container: corev1.Container{Name: "agent", Image: "agent:1"}})
	})
}

func both(shipper, agent string) func(*kruise.SidecarSet) {
	return func(s *kruise.SidecarSet) { s.Spec.Containers[0].Image, s.Spec.Containers[1].Image = shipper, agent }
}

// Of a pair the container that started last serves: it has taken over from the other one.
func TestHotUpgradesThatAreTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		broken  []string
		first   func(*kruise.SidecarSet)
		held    string // the pair while the first change is under way
		next    func(*kruise.SidecarSet)
		late    bool   // what does not start at first does in the end
		working string // in the end, with the image
	}{
		"the new image does not start, and the old one is wanted again": {
			broken: []string{"logs:2"}, first: both("logs:2", "agent:1"), held: "logs:1 logs:2", next: both("logs:1", "agent:1"), working: "shipper-2 logs:1",
		},
		"the new image does not start, and the next one does": {
			broken: []string{"logs:2"}, first: both("logs:2", "agent:1"), held: "logs:1 logs:2", next: both("logs:3", "agent:1"), working: "shipper-2 logs:3",
		},
		"the new image has taken over beside an agent that does not start, and the old ones are wanted again": {
			broken: []string{"agent:2"}, first: both("logs:2", "agent:2"), held: "logs:1 logs:2", next: both("logs:1", "agent:1"), working: "shipper-1 logs:1",
		},
		"the new image has taken over beside an agent that does not start, and another agent is wanted": {
			broken: []string{"agent:2"}, first: both("logs:2", "agent:2"), held: "logs:1 logs:2", next: both("logs:2", "agent:3"), working: "shipper-2 logs:2",
		},
		"the new image does not start yet, and another agent is wanted": {
			broken: []string{"logs:2"}, first: both("logs:2", "agent:1"), held: "logs:1 logs:2", next: both("logs:2", "agent:3"), late: true, working: "shipper-2 logs:2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := hotLogs()
			w := newWorld(t, "", append(webs(t, 1, set), set)...)
			w.broken = tc.broken
			serving, versions := "shipper-1", map[string]string{}
			kubelet := func() {
				t.Helper()
				was := w.pods()[0]
				w.run()
				p := w.pods()[0]
				for _, name := range []string{"shipper-1", "shipper-2"} {
					restarted := containerID(was, name) != containerID(p, name)
					if restarted {
						versions[name] = p.Annotations[kruise.SidecarSetVersionPrefix+name]
					}
					if containerID(was, name) == "" {
						continue
					}
					if restarted && name == serving {
						t.Errorf("%s is stopped while it serves", name)
					}
					if containerstatus.IsReady(p, name) && imageID(p, name) != "id-of-empty" && (restarted || !containerstatus.IsReady(was, name)) {
						serving = name
					}
				}
			}
			rounds := func() {
				t.Helper()
				for range 8 {
					w.round("logs")
					kubelet()
				}
				w.round("logs")
			}
			kubelet()
			w.round("logs")
			w.edit("logs", tc.first)
			rounds()
			pair := func() string {
				return containerOf(w.pods()[0], "shipper-1").Image + " " + containerOf(w.pods()[0], "shipper-2").Image
			}
			if pair() != tc.held {
				t.Fatalf("the pair is %s, want %s", pair(), tc.held)
			}
			w.edit("logs", tc.next)
			rounds()
			if tc.late {
				w.broken = nil
				rounds()
			}
			p := w.pods()[0]
			working := podmeta.WorkingContainers(p)["shipper"]
			if got := working + " " + containerOf(p, working).Image; got != tc.working || serving != working {
				t.Errorf("%s works, want %s, and %s serves", got, tc.working, serving)
			}
			if idle := containerOf(p, otherOf("shipper", working)).Image; idle != "empty" || containerOf(p, "agent").Image != w.set("logs").Spec.Containers[1].Image {
				t.Errorf("the idle one has %s, and the agent %s", idle, containerOf(p, "agent").Image)
			}
			if s := w.set("logs").Status; s.UpdatedPods != 1 || s.ReadyPods != 1 {
				t.Errorf("the status is %+v", s)
			}
			if got := p.Annotations[kruise.SidecarSetVersionPrefix+working]; got != versions[working] {
				t.Errorf("the version of %s is %s, and it was %s when it started", working, got, versions[working])
			}
		})
	}
}

// A version that is not ready is what a hot upgrade mends: it ends like any other.
func TestAHotUpgradeAwayFromAVersionThatIsNotReadyEnds(t *testing.T) {
	for name, tc := range map[string]struct{ from, to string }{
		"tags":    {"logs:1", "logs:2"},
		"digests": {"logs@sha256:1", "logs@sha256:2"},
	} {
		t.Run(name, func(t *testing.T) {
			set := hotLogs()
			set.Spec.Containers[0].Image = tc.from
			w := newWorld(t, "", append(webs(t, 3, set), set)...)
			w.broken = []string{tc.from}
			w.run()
			w.round("logs")
			w.edit("logs", image(tc.to))
			for range 12 {
				w.round("logs")
				w.run()
			}
			w.round("logs")
			if first, second := w.images("shipper-1"), w.images("shipper-2"); first != "empty×3" || second != tc.to+"×3" {
				t.Errorf("the pairs are %s and %s", first, second)
			}
			if s := w.set("logs").Status; s.UpdatedPods != 3 || s.UpdatedReadyPods != 3 {
				t.Errorf("the status is %+v", s)
			}
		})
	}
}

// hotPairs is a SidecarSet of two hot pairs.
func hotPairs() *kruise.SidecarSet {
	set := hotLogs()
	set.Spec.Containers[1].UpgradeStrategy = set.Spec.Containers[0].UpgradeStrategy
	return set
}

// SS-13: the container that was replaced is reset once all others run, but for those that are empty.
func TestWhenTheOldContainerOfAPairIsReset(t *testing.T) {
	for name, tc := range map[string]struct {
		broken []string
		status func(*corev1.Pod)        // what the pod says once the new container runs
		edit   func(*kruise.SidecarSet) // what is edited then
		want   string
	}{
		"when the pod is ready":          {want: "empty"},
		"not while the update is paused": {edit: func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.Paused = true }, want: "logs:1"},
		"nor where nothing is updated": {edit: func(s *kruise.SidecarSet) {
			s.Spec.UpdateStrategy.Type = kruise.NotUpdateSidecarSetStrategyType
		}, want: "logs:1"},
		"when the pod waits for a readiness gate alone": {status: func(p *corev1.Pod) {
			inplace.FindCondition(p, corev1.PodReady).Status = corev1.ConditionFalse
		}, want: "empty"},
		"when an empty image does not run":         {broken: []string{"empty"}, want: "empty"},
		"not while the new container does not run": {broken: []string{"logs:2"}, want: "logs:1"},
		"nor while one of the pod's own does not":  {broken: []string{"web:1"}, want: "logs:1"},
	} {
		t.Run(name, func(t *testing.T) {
			set := hotPairs()
			w := newWorld(t, "", append(webs(t, 1, set), set)...)
			w.broken = tc.broken
			w.run()
			w.round("logs")
			w.edit("logs", image("logs:2"))
			w.round("logs")
			w.run()
			if tc.status != nil {
				p := w.pods()[0]
				tc.status(p)
				if err := w.api.Status().Update(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if tc.edit != nil {
				w.edit("logs", tc.edit)
			}
			w.round("logs")
			w.round("logs")
			if p := w.pods()[0]; containerOf(p, "shipper-1").Image != tc.want || containerOf(p, "shipper-2").Image != "logs:2" {
				t.Errorf("the pair is %s and %s, want %s and logs:2", containerOf(p, "shipper-1").Image, containerOf(p, "shipper-2").Image, tc.want)
			}
		})
	}
}

// ends has a container of a pod of a Job end, which is not started again.
func (w *world) ends(pod, container string, code int32) {
	w.t.Helper()
	for _, p := range w.pods() {
		if p.Name == pod {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			if err := w.api.Update(w.t.Context(), p); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if w.ended == nil {
		w.ended = map[string]corev1.ContainerStateTerminated{}
	}
	w.ended[pod+"/"+container] = corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(w.clock.Now())}
	w.run()
}

func TestHotUpgradesKnowContainersThatHaveEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		container     string
		before        bool // it ends before the upgrade, and not once the new container runs
		first, second string
	}{
		"the main container of a Job":               {"main", false, "empty", "logs:2"},
		"it ended before":                           {"main", true, "empty", "logs:2"},
		"the old container":                         {"shipper-1", true, "empty", "logs:2"},
		"the new container has not taken over":      {"shipper-2", false, "logs:1", "logs:2"},
		"the empty container never starts anything": {"shipper-2", true, "logs:1", "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, "", 1, hotLogs())
			if tc.before {
				w.ends("web-0", tc.container, 0)
			}
			w.edit("logs", image("logs:2"))
			w.round("logs")
			w.run()
			if !tc.before {
				w.ends("web-0", tc.container, 0)
			}
			told := w.told(kruise.SidecarSetNotUpgradablePodsReason)
			for range 3 {
				w.round("logs")
				w.run()
			}
			if p := w.pods()[0]; containerOf(p, "shipper-1").Image != tc.first || containerOf(p, "shipper-2").Image != tc.second {
				t.Errorf("the pair is %s and %s, want %s and %s", containerOf(p, "shipper-1").Image, containerOf(p, "shipper-2").Image, tc.first, tc.second)
			}
			if (len(told) > 0) != (tc.second == "empty") {
				t.Errorf("told is %v", told)
			}
		})
	}
}

// Pods of Jobs whose main containers have ended are not ready indefinitely, and keep no other pod waiting.
func TestPodsWhoseMainContainersHaveEndedKeepNoOtherWaiting(t *testing.T) {
	for name, tc := range map[string]struct {
		code   int32
		before bool // it ends before the update
		want   string
		lost   bool // the kubelet lost the container, and does not know when it ended
	}{
		"with success":                      {0, false, "logs:2×3", false},
		"with a failure before the update":  {1, true, "logs:2×3", false},
		"with a failure after it":           {1, false, "logs:1×2 logs:2×1", false},
		"with a failure at an unknown time": {137, false, "logs:1×2 logs:2×1", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, "", 3, logs(nil))
			if tc.before {
				w.ends("web-0", "main", tc.code)
				w.clock.Step(time.Minute)
			}
			w.edit("logs", image("logs:2"))
			w.round("logs")
			w.run()
			if updated := w.with("shipper", "logs:2"); !tc.before {
				w.ends(updated, "main", tc.code)
			} else if updated != "web-0 web-1" { // the first is unavailable already
				t.Errorf("at first %s are updated", updated)
			}
			if tc.lost {
				for name, exit := range w.ended {
					exit.FinishedAt, exit.Reason = metav1.Time{}, "ContainerStatusUnknown"
					w.ended[name] = exit
				}
				w.run()
			}
			for range 5 {
				w.round("logs")
				w.run()
			}
			if got := w.images("shipper"); got != tc.want {
				t.Errorf("the images are %s, want %s", got, tc.want)
			}
		})
	}
}

// SS-12: while a pod is reset no other one is updated, however many may be unavailable.
func TestResetsGoBeforeUpdates(t *testing.T) {
	set := hotLogs()
	set.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(2))
	set.Spec.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"n": "0"}}
	w := started(t, "", 2, set)
	w.edit("logs", image("logs:2"))
	w.round("logs")
	w.run()
	w.edit("logs", func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.Selector = nil })
	for _, want := range []struct{ when, reset, updated string }{
		{"while the first is reset", "web-0", "web-0"}, {"after it was", "web-0", "web-0 web-1"},
	} {
		w.round("logs")
		if reset, updated := w.with("shipper-1", "empty"), w.with("shipper-2", "logs:2"); reset != want.reset || updated != want.updated {
			t.Errorf("%s: %q are reset and %q are updated", want.when, reset, updated)
		}
	}
}

// A hold is of what it names: a pod that waits to be reset uses up maxUnavailable, and keeps no other pod from its update beyond that.
func TestAResetThatIsHeldKeepsNoOtherPodFromItsUpdate(t *testing.T) {
	hold := "package extend.rollout.x\nhold contains {\"reason\": \"One\", \"message\": \"m\", \"pod\": \"web-0\"} if input.workload.annotations.held\n"
	for name, tc := range map[string]struct {
		maxUnavailable int32
		updated        string
	}{
		"it is as many as may be unavailable": {1, "web-0"},
		"one more may be":                     {2, "web-0 web-1"},
	} {
		t.Run(name, func(t *testing.T) {
			set := hotLogs()
			set.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(tc.maxUnavailable))
			set.Spec.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"n": "0"}}
			w := started(t, hold, 2, set)
			w.edit("logs", image("logs:2"))
			w.round("logs")
			w.run()
			w.edit("logs", func(s *kruise.SidecarSet) {
				s.Annotations, s.Spec.UpdateStrategy.Selector = map[string]string{"held": "yes"}, nil
			})
			for range 4 {
				w.round("logs")
				w.run()
			}
			if reset, updated := w.with("shipper-1", "empty"), w.with("shipper-2", "logs:2"); strings.Contains(reset, "web-0") || updated != tc.updated {
				t.Errorf("%q are reset and %q are updated, want %q updated", reset, updated, tc.updated)
			}
		})
	}
}

// startHotUpgrade is three pods whose next version runs, so that their resets come next.
func startHotUpgrade(t *testing.T) *world {
	t.Helper()
	set := hotLogs()
	set.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(3))
	w := started(t, "", 3, set)
	w.edit("logs", image("logs:2"))
	w.round("logs")
	w.run()
	return w
}

// A reset that waits for the budget of its pod says so in the status, and keeps no other pod from its own.
func TestABudgetHoldsTheReset(t *testing.T) {
	w := startHotUpgrade(t)
	w.spared = "shop/web-1"
	w.told("")
	for range 5 {
		w.round("logs")
		w.run()
	}
	if got := w.with("shipper-1", "empty"); got != "web-0 web-2" {
		t.Errorf("%q are reset while a budget holds web-1", got)
	}
	if c := meta.FindStatusCondition(w.set("logs").Status.Conditions, kruise.UpdateHeld); c == nil || c.Status != metav1.ConditionTrue || c.Reason != "BudgetExceeded" {
		t.Errorf("the condition is %+v", c)
	}
	events := w.told("")
	if n := strings.Count(strings.Join(events, " "), "BudgetExceeded"); n != 1 || len(events) != 3 { // with those of the two resets
		t.Errorf("%d of the events tell of it: %q", n, events)
	}
	w.spared = ""
	w.round("logs")
	if got := w.with("shipper-1", "empty"); got != "web-0 web-1 web-2" {
		t.Errorf("%q are reset when the budget lets them", got)
	}
	w.run()
	w.round("logs")
	if c := meta.FindStatusCondition(w.set("logs").Status.Conditions, kruise.UpdateHeld); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("the condition is %+v when the budget lets them be reset", c)
	}
}

// A budget that cannot be asked about one pod keeps no other pod from its reset.
func TestABudgetThatGivesNoAnswerKeepsNoOtherPodFromItsReset(t *testing.T) {
	w := startHotUpgrade(t)
	w.unasked = "shop/web-0"
	if _, err := w.c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs"}}); err == nil || !strings.Contains(err.Error(), "web-0") {
		t.Errorf("the error is %v", err)
	}
	if got := w.with("shipper-1", "empty"); got != "web-1 web-2" {
		t.Errorf("%q are reset", got)
	}
	if c := meta.FindStatusCondition(w.set("logs").Status.Conditions, rollout.PhaseUpdate); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %+v", c)
	}
}

func TestAResetThatFailsIsTold(t *testing.T) {
	w := started(t, "", 1, hotLogs())
	w.edit("logs", image("logs:2"))
	w.round("logs")
	w.run()
	w.refusal = errors.New("no answer")
	if _, err := w.c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs"}}); err == nil {
		t.Error("nothing fails")
	}
	got := w.told(kruise.SidecarSetResetContainerFailedReason)
	if len(got) != 1 || !strings.HasPrefix(got[0], corev1.EventTypeWarning) || !strings.Contains(got[0], "shipper-1") || !strings.Contains(got[0], "no answer") {
		t.Errorf("events %q", got)
	}
	w.refusal = nil
	w.round("logs")
	if got := w.told(kruise.SidecarSetResetContainerSucceededReason); len(got) != 1 || w.images("shipper-1") != "empty×1" {
		t.Errorf("events %q, and the image is %s", got, w.images("shipper-1"))
	}
}

func containerID(pod *corev1.Pod, container string) string {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return pod.Status.ContainerStatuses[i].ContainerID
		}
	}
	return ""
}

// Another empty image is wanted of all pods at once. It is written as any other update is: past no hold, no budget, no
// partition, no selector.
func TestHotResetsAreHeldAndBounded(t *testing.T) {
	freeze := "package extend.rollout.x\nhold contains {\"reason\": \"Freeze\", \"message\": \"m\"}\n"
	for name, tc := range map[string]struct {
		rules string
		edit  func(*kruise.SidecarSet)
		most  int
	}{
		"as many as may be unavailable": {"", func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(3)) }, 3},
		"a freeze":                      {freeze, nil, 0},
		"paused":                        {"", func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.Paused = true }, 0},
		"the partition keeps all": {"", func(s *kruise.SidecarSet) {
			s.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromInt32(20))
			s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(20))
		}, 0},
		"the selector selects two": {"", func(s *kruise.SidecarSet) {
			s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(20))
			s.Spec.UpdateStrategy.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "n", Operator: metav1.LabelSelectorOpIn, Values: []string{"3", "4"}}}}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			set := hotLogs()
			w := newWorld(t, tc.rules, append(webs(t, 20, set), set)...)
			w.run()
			w.round("logs")
			w.edit("logs", func(s *kruise.SidecarSet) {
				s.Spec.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage = "empty:2"
				if tc.edit != nil {
					tc.edit(s)
				}
			})
			w.round("logs")
			reset := 0
			for _, p := range w.pods() {
				if containerOf(p, "shipper-2").Image == "empty:2" {
					reset++
				}
			}
			if reset != tc.most {
				t.Errorf("%d of 20 pods are reset in one round, want %d", reset, tc.most)
			}
		})
	}
}
