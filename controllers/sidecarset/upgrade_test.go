// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

func started(t *testing.T, rules string, n int, set *kruise.SidecarSet, changes ...func(*corev1.Pod)) *world {
	t.Helper()
	pods := webs(t, n, set)
	for _, p := range pods {
		for _, change := range changes {
			change(p.(*corev1.Pod))
		}
	}
	w := newWorld(t, rules, append(pods, set)...)
	w.run()
	w.round(set.Name)
	return w
}

func image(name string) func(*kruise.SidecarSet) {
	return func(s *kruise.SidecarSet) { s.Spec.Containers[0].Image = name }
}

// markedLongAgo marks a pod as releases of long ago did: with nothing but the hashes.
func markedLongAgo(p *corev1.Pod) {
	for _, key := range []string{kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey} {
		entries, _ := podmeta.Read(p, key)
		p.Annotations[key] = fmt.Sprintf("{\"logs\":%q}", entries["logs"].Hash)
	}
}

// otherwise has a pod differ from the SidecarSet in more than images.
func otherwise(p *corev1.Pod) {
	_ = podmeta.Entries{"logs": {Hash: "other", SidecarSetName: "logs"}}.Write(p, kruise.SidecarSetHashWithoutImageKey)
}

func TestImagesAreUpdatedAsTheStrategySays(t *testing.T) {
	type strategy = kruise.SidecarSetUpdateStrategy
	number := func(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }
	percent := func(text string) *intstr.IntOrString { return ptr.To(intstr.FromString(text)) }
	labelled := func(n string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{"n": n}}
	}
	const all = "web-0 web-1 web-2 web-3"
	for name, tc := range map[string]struct {
		strategy strategy
		rules    string
		pods     func(*corev1.Pod)
		down     []string // do not run at first
		once     string   // are updated after one round
		end      string
	}{
		"one at a time by default":           {once: "web-0", end: all},
		"as many as may be unavailable":      {strategy: strategy{MaxUnavailable: percent("50%")}, once: "web-0 web-1", end: all},
		"a share of the pods is rounded up":  {strategy: strategy{MaxUnavailable: percent("30%")}, once: "web-0 web-1", end: all},
		"a partition keeps some":             {strategy: strategy{Partition: percent("75%"), MaxUnavailable: number(4)}, once: "web-0", end: "web-0"},
		"those that are selected":            {strategy: strategy{Selector: ptr.To(labelled("2"))}, once: "web-2", end: "web-2"},
		"none while paused":                  {strategy: strategy{Paused: true}},
		"none by NotUpdate":                  {strategy: strategy{Type: kruise.NotUpdateSidecarSetStrategyType}},
		"pods that were marked long ago too": {pods: markedLongAgo, once: "web-0", end: all},
		"one of a higher weight goes first": {strategy: strategy{PriorityStrategy: &kruise.UpdatePriorityStrategy{
			WeightPriority: []kruise.UpdatePriorityWeightTerm{{Weight: 10, MatchSelector: labelled("3")}},
		}}, once: "web-3", end: all},
		"a pod that cannot be updated uses up no partition": {strategy: strategy{Partition: number(1), MaxUnavailable: number(4)}, pods: func(p *corev1.Pod) {
			if p.Name == "web-0" {
				otherwise(p)
			}
		}, once: "web-1 web-2", end: "web-1 web-2"},
		"those that are not ready go whatever may be unavailable": {strategy: strategy{MaxUnavailable: number(0)}, down: []string{"web-1", "web-3"}, once: "web-1 web-3", end: "web-1 web-3"},
		"and leave the others as much room as there is":           {down: []string{"web-2", "web-3"}, once: "web-0 web-2 web-3", end: all},
		"but no more of them go than the partition lets":          {strategy: strategy{Partition: number(3), MaxUnavailable: number(4)}, down: []string{"web-2", "web-3"}, once: "web-2", end: "web-2"},
		"one that is not ready and not selected stops no other":   {strategy: strategy{Selector: ptr.To(labelled("2"))}, down: []string{"web-0"}, once: "web-2", end: "web-2"},
		"nor does one that is not ready and that can not be updated": {down: []string{"web-0"}, pods: func(p *corev1.Pod) {
			if p.Name == "web-0" {
				otherwise(p)
			}
		}, once: "web-1", end: "web-1 web-2 web-3"},
		"none while held": {rules: "package extend.rollout.x\nhold contains {\"reason\": \"Freeze\", \"message\": \"m\"} if input.workload.kind == \"SidecarSet\"\n"},
		"none of a pod held": {rules: "package extend.rollout.x\nhold contains {\"reason\": \"R\", \"message\": \"m\", \"pod\": pod.name} if {\n\tsome pod in input.pods\n\tpod.name == \"web-0\"\n}\n",
			once: "web-1", end: "web-1 web-2 web-3"},
	} {
		t.Run(name, func(t *testing.T) {
			set := logs(func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy = tc.strategy })
			pods := webs(t, 4, set)
			for _, p := range pods {
				if tc.pods != nil {
					tc.pods(p.(*corev1.Pod))
				}
			}
			w := newWorld(t, tc.rules, append(pods, set)...)
			w.run(tc.down...)
			w.round("logs")
			if got := w.set("logs").Status.UpdatedPods; got != 4 {
				t.Fatalf("%d pods have the latest revision at first", got)
			}
			w.edit("logs", image("logs:2"))
			w.round("logs")
			if got := w.with("shipper", "logs:2"); got != tc.once {
				t.Errorf("after a round %q are updated, want %q", got, tc.once)
			}
			w.round("logs") // what was updated does not run yet
			if got := w.with("shipper", "logs:2"); got != tc.once {
				t.Errorf("before the new containers run %q are updated, want %q", got, tc.once)
			}
			for range 6 {
				w.run()
				w.round("logs")
			}
			if got := w.with("shipper", "logs:2"); got != tc.end {
				t.Errorf("in the end %q are updated, want %q", got, tc.end)
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
	for name, tc := range map[string]struct {
		limit   int32
		named   string // the version that new pods get
		updated bool   // whether the pod gets version a
		want    []string
	}{
		"the newest stay":                   {limit: 2, want: []string{"c", "d"}},
		"one that is named is in use":       {limit: 2, named: "a", want: []string{"a", "d"}},
		"one that a pod has is in use":      {limit: 2, updated: true, want: []string{"a", "d"}},
		"the latest stays whatever is said": {limit: 0, want: []string{"d"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, "", 1, logs(func(s *kruise.SidecarSet) {
				s.Spec.RevisionHistoryLimit = ptr.To(tc.limit)
				if tc.named != "" {
					s.Spec.InjectionStrategy.Revision = &kruise.SidecarSetInjectRevision{CustomVersion: ptr.To(tc.named)}
				}
			}))
			for i, version := range []string{"a", "b", "c", "d"} {
				w.edit("logs", func(s *kruise.SidecarSet) {
					s.Spec.Containers[0].Image, s.Spec.CustomVersion = "logs:"+string(rune('2'+i)), version
					s.Spec.UpdateStrategy.Paused = !tc.updated || version != "a"
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
			if !slices.Equal(versions, tc.want) {
				t.Errorf("left are %v, want %v", versions, tc.want)
			}
		})
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
		c := inplace.FindCondition(p, kruise.SidecarSetUpgradableCondition)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason != kruise.SidecarSetUpdateImmutableFieldReason || c.Message != `{"logs":false}` {
			t.Errorf("the condition of %s is %+v", p.Name, c)
		}
	}
	if got := w.told(kruise.SidecarSetNotUpgradablePodsReason); len(got) != 1 || !strings.HasPrefix(got[0], corev1.EventTypeNormal) {
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
		if c := inplace.FindCondition(p, kruise.SidecarSetUpgradableCondition); c == nil || c.Status != corev1.ConditionTrue || c.Reason != kruise.SidecarSetAllUpgradableReason || c.Message != `{"logs":true}` {
			t.Errorf("the condition of %s is %+v", p.Name, c)
		}
	}
}

// What the strategy does not select is not to be updated, so that nothing is said of it.
func TestOnlyPodsThatTheStrategySelectsAreCalledNotUpgradable(t *testing.T) {
	w := started(t, "", 3, logs(func(s *kruise.SidecarSet) {
		s.Spec.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"n": "1"}}
	}))
	w.edit("logs", func(s *kruise.SidecarSet) { s.Spec.Containers[0].Command = []string{"sleep"} })
	w.round("logs")
	w.round("logs")
	for _, p := range w.pods() {
		if c := inplace.FindCondition(p, kruise.SidecarSetUpgradableCondition); (c != nil) != (p.Name == "web-1") || c != nil && c.Status != corev1.ConditionFalse {
			t.Errorf("the condition of %s is %+v", p.Name, c)
		}
	}
	if got := w.told(kruise.SidecarSetNotUpgradablePodsReason); len(got) != 1 || !strings.Contains(got[0], "detected 1 not upgradable pod(s)") {
		t.Errorf("events %v", got)
	}
}

// A pod says of each of its SidecarSets whether it can be updated, and is upgradable when it can be by all of them.
func TestAPodSaysOfEachSidecarSetWhetherItIsUpgradable(t *testing.T) {
	agent := logs(func(s *kruise.SidecarSet) {
		s.Name, s.UID, s.Spec.Containers[0].Name, s.Spec.Containers[0].Image = "agent", "agent", "agent", "agent:1"
	})
	set := logs(nil)
	w := newWorld(t, "", append(webs(t, 1, set, agent), set, agent)...)
	w.run()
	says := func(when string, status corev1.ConditionStatus, reason, message string) {
		t.Helper()
		for range 2 {
			w.round("logs")
			w.round("agent")
			w.run()
		}
		if c := inplace.FindCondition(w.pods()[0], kruise.SidecarSetUpgradableCondition); c == nil || c.Status != status || c.Reason != reason || c.Message != message {
			t.Errorf("%s: the condition is %+v", when, c)
		}
	}
	w.edit("logs", func(s *kruise.SidecarSet) {
		s.Spec.Containers[0].Image, s.Spec.Containers[0].Command = "logs:2", []string{"sleep"}
	})
	says("one is not updated", corev1.ConditionFalse, kruise.SidecarSetUpdateImmutableFieldReason, `{"logs":false}`)
	w.edit("agent", image("agent:2"))
	says("the other one is", corev1.ConditionFalse, kruise.SidecarSetUpdateImmutableFieldReason, `{"agent":true,"logs":false}`)
	w.edit("logs", func(s *kruise.SidecarSet) { s.Spec.Containers[0].Command = nil })
	says("both are", corev1.ConditionTrue, kruise.SidecarSetAllUpgradableReason, `{"agent":true,"logs":true}`)
	if got := w.images("shipper") + " " + w.images("agent"); got != "logs:2×1 agent:2×1" {
		t.Errorf("the images are %s", got)
	}
}

// What else new pods would be given is not given to running ones (SS-17).
func TestNothingButImagesIsUpdatedInPlace(t *testing.T) {
	load := kruise.SidecarContainer{Container: corev1.Container{Name: "load", Image: "load:1"}}
	native := load
	native.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	for name, tc := range map[string]struct {
		set  func(*kruise.SidecarSet)
		pod  func(*corev1.Pod)        // what changed after the pod was given the containers
		edit func(*kruise.SidecarSet) // what is edited with the image
	}{
		"secrets for images that it has are for new pods": {edit: func(s *kruise.SidecarSet) {
			s.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		}},
		"mounts and variables are not looked up again": {set: func(s *kruise.SidecarSet) {
			s.Spec.Containers[0].ShareVolumePolicy.Type = kruise.ShareVolumePolicyEnabled
			s.Spec.Containers[0].TransferEnv = []kruise.TransferEnvVar{{SourceContainerName: "main", EnvName: "LEVEL"}}
		}, pod: func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data"}}
			main := containerOf(p, "main")
			main.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
			main.Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		}},
		"an init container does not run again": {
			set:  func(s *kruise.SidecarSet) { s.Spec.InitContainers = []kruise.SidecarContainer{load} },
			edit: func(s *kruise.SidecarSet) { s.Spec.InitContainers[0].Image = "load:2" },
		},
		"nor is one restarted that stays running": {
			set:  func(s *kruise.SidecarSet) { s.Spec.InitContainers = []kruise.SidecarContainer{native} },
			edit: func(s *kruise.SidecarSet) { s.Spec.InitContainers[0].Image = "load:2" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var changes []func(*corev1.Pod)
			if tc.pod != nil {
				changes = append(changes, tc.pod)
			}
			w := started(t, "", 1, logs(tc.set), changes...)
			want := w.pods()[0].Spec
			w.edit("logs", image("logs:2"))
			if tc.edit != nil {
				w.edit("logs", tc.edit)
			}
			w.round("logs")
			w.round("logs")
			want.Containers[0].Image = "logs:2"
			if diff := cmp.Diff(want, w.pods()[0].Spec); diff != "" {
				t.Error(diff)
			}
			if got := w.set("logs").Status.UpdatedPods; got != 1 {
				t.Errorf("%d pods are updated", got)
			}
		})
	}
}

// Metadata is patched as in a new pod (SS-04).
func TestAnUpdatePatchesMetadataAgain(t *testing.T) {
	w := started(t, "", 1, logs(nil), func(p *corev1.Pod) {
		p.Annotations["kept"], p.Annotations["replaced"], p.Annotations["merged"] = "own", "own", `{"a":1}`
	})
	w.edit("logs", func(s *kruise.SidecarSet) {
		s.Spec.Containers[0].Image = "logs:2"
		s.Spec.PatchPodMetadata = []kruise.SidecarSetPatchPodMetadata{
			{Annotations: map[string]string{"kept": "theirs", "added": "theirs"}, PatchPolicy: kruise.SidecarSetRetainPatchPolicy},
			{Annotations: map[string]string{"replaced": "theirs"}, PatchPolicy: kruise.SidecarSetOverwritePatchPolicy},
			{Annotations: map[string]string{"merged": `{"b":2}`}, PatchPolicy: kruise.SidecarSetMergePatchJSONPatchPolicy},
		}
	})
	w.round("logs")
	is := w.pods()[0].Annotations
	for key, want := range map[string]string{"kept": "own", "added": "theirs", "replaced": "theirs", "merged": `{"a":1,"b":2}`} {
		if is[key] != want {
			t.Errorf("the annotation %s is %q, want %q", key, is[key], want)
		}
	}
}

// A pod keeps which revision it was first updated to, and since when, and what each container ran before it was changed last.
func TestAPodRecordsItsUpdates(t *testing.T) {
	w := started(t, "", 1, logs(nil))
	w.edit("logs", image("logs:2"))
	revision, since := hashOf(w.set("logs")), w.clock.Now().UTC().Format(time.RFC3339)
	for _, next := range []struct{ was, image string }{{"logs:1", "logs:2"}, {"logs:2", "logs:3"}} {
		w.edit("logs", image(next.image))
		w.round("logs")
		want := fmt.Sprintf(`{"logs":{"revision":%q,"updateTimestamp":%q,"lastContainerStatuses":{"shipper":{"imageID":"id-of-%s","containerID":"run-of-shipper%[3]s"}}}}`, revision, since, next.was)
		if got := w.pods()[0].Annotations[kruise.SidecarSetInPlaceUpdateStateKey]; got != want {
			t.Errorf("with %s it records %s, want %s", next.image, got, want)
		}
		w.run()
		w.round("logs")
	}
}

// The hashes of a pod are written whether or not a container changes.
func TestAPodThatHasTheImageAlreadyIsMarked(t *testing.T) {
	w := started(t, "", 1, logs(nil), func(p *corev1.Pod) { containerOf(p, "shipper").Image = "logs:2" })
	w.edit("logs", image("logs:2"))
	w.round("logs")
	w.round("logs")
	if _, recorded := w.pods()[0].Annotations[kruise.SidecarSetInPlaceUpdateStateKey]; recorded || w.images("shipper") != "logs:2×1" {
		t.Errorf("the image is %s, and an update is recorded: %t", w.images("shipper"), recorded)
	}
	if s := w.set("logs").Status; s.UpdatedPods != 1 || s.UpdatedReadyPods != 1 {
		t.Errorf("the status is %+v", s)
	}
}

// What has not taken its last image yet, though it is still ready, gets no other one (SS-14).
func TestAContainerThatIsAboutToRestartIsNotChangedAgain(t *testing.T) {
	w := started(t, "", 1, logs(nil))
	for _, next := range []string{"logs:2", "logs:3"} {
		w.edit("logs", image(next))
		w.round("logs")
		w.round("logs")
		if got := w.images("shipper"); got != "logs:2×1" {
			t.Errorf("with %s, before the container has restarted, the image is %s", next, got)
		}
	}
	w.run()
	w.round("logs")
	if got := w.images("shipper"); got != "logs:3×1" {
		t.Errorf("when it has, the image is %s", got)
	}
}

// With the gate PodUnavailableBudgetUpdateGate a budget holds an update as a policy does.
func TestABudgetHoldsTheUpdate(t *testing.T) {
	w := started(t, "", 3, logs(func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(3)) }))
	w.spared = "shop/web-1"
	w.edit("logs", image("logs:2"))
	w.round("logs")
	if got := w.with("shipper", "logs:2"); got != "web-0 web-2" { // they are of no workload, and so of no budget of web-1
		t.Errorf("%q are updated", got)
	}
	if c := meta.FindStatusCondition(w.set("logs").Status.Conditions, kruise.UpdateHeld); c == nil || c.Status != metav1.ConditionTrue || c.Reason != "BudgetExceeded" {
		t.Errorf("the condition is %+v", c)
	}
	w.spared = ""
	w.round("logs")
	if got := w.with("shipper", "logs:2"); got != "web-0 web-1 web-2" {
		t.Errorf("%q are updated when the budget lets them", got)
	}
	if c := meta.FindStatusCondition(w.set("logs").Status.Conditions, kruise.UpdateHeld); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("the condition is %+v when the budget lets them be updated", c)
	}
}

// A SidecarSet has pods of many workloads. A budget that refuses one of them is asked about no other of its workload in a round, and keeps
// no pod of another workload from its update.
func TestABudgetOfOneWorkloadKeepsNoOtherFromTheUpdate(t *testing.T) {
	w := started(t, "", 4, logs(func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(4)) }))
	for _, p := range w.pods() {
		of := types.UID("a")
		if p.Name == "web-1" {
			of = "b"
		}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: string(of), UID: of, Controller: ptr.To(true)}}
		if err := w.api.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	w.spared = "shop/web-0" // it goes first
	w.edit("logs", image("logs:2"))
	for range 3 {
		w.asked = nil
		w.round("logs")
	}
	if got := w.with("shipper", "logs:2"); got != "web-1" {
		t.Errorf("%q are updated", got)
	}
	if !slices.Equal(w.asked, []string{"web-0"}) {
		t.Errorf("budgets are asked about %q in a round", w.asked)
	}
}

func TestPodsThatWereNotGivenTheContainersDoNotCount(t *testing.T) {
	without := func(list *[]corev1.Container, name string) {
		*list = slices.DeleteFunc(*list, func(c corev1.Container) bool { return c.Name == name })
	}
	for name, change := range map[string]func(*corev1.Pod){
		"one that does not say that it was":           func(p *corev1.Pod) { delete(p.Annotations, kruise.SidecarSetInjectedListKey) },
		"one with other labels":                       func(p *corev1.Pod) { p.Labels["app"] = "db" },
		"one of another namespace":                    func(p *corev1.Pod) { p.Namespace = "bank" },
		"one without a container":                     func(p *corev1.Pod) { without(&p.Spec.Containers, "agent") },
		"one without the first container of a pair":   func(p *corev1.Pod) { without(&p.Spec.Containers, "shipper-1") },
		"one without the second container of a pair":  func(p *corev1.Pod) { without(&p.Spec.Containers, "shipper-2") },
		"one that does not say which of a pair works": func(p *corev1.Pod) { delete(p.Annotations, kruise.SidecarSetWorkingHotUpgradeKey) },
		"one that says that none of the pair does":    func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetWorkingHotUpgradeKey] = `{"shipper":"main"}` },
	} {
		t.Run(name, func(t *testing.T) {
			set := hotLogs()
			set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "shop"}}
			set.Spec.InitContainers = []kruise.SidecarContainer{{Container: corev1.Container{Name: "load", Image: "load:1"}}}
			pods := webs(t, 2, set)
			change(pods[0].(*corev1.Pod))
			bank := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank", Labels: map[string]string{corev1.LabelMetadataName: "bank"}}}
			w := newWorld(t, "", append(pods, set, bank)...)
			w.run()
			w.round("logs")
			if s := w.set("logs").Status; s.MatchedPods != 1 {
				t.Errorf("%d count, want the other one", s.MatchedPods)
			}
		})
	}
}

// Init containers can be added to a SidecarSet. The pods that there are stay its own: a plain init container has no part in
// updates, and a native one is told as a change that needs new pods.
func TestPodsStayMatchedWhenAnInitContainerIsAdded(t *testing.T) {
	for name, tc := range map[string]struct {
		policy *corev1.ContainerRestartPolicy
		images string
		told   int
	}{
		"a plain one":  {nil, "logs:2×2", 0},
		"a native one": {ptr.To(corev1.ContainerRestartPolicyAlways), "logs:1×2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, "", 2, logs(nil))
			w.edit("logs", func(s *kruise.SidecarSet) {
				s.Spec.InitContainers = []kruise.SidecarContainer{{Container: corev1.Container{Name: "load", Image: "load:1", RestartPolicy: tc.policy}}}
				s.Spec.Containers[0].Image = "logs:2"
			})
			for range 4 {
				w.round("logs")
				w.run()
			}
			if s := w.set("logs").Status; s.MatchedPods != 2 {
				t.Errorf("%d pods are matched, want 2", s.MatchedPods)
			}
			if got := w.images("shipper"); got != tc.images {
				t.Errorf("the images are %s, want %s", got, tc.images)
			}
			if got := w.told(kruise.SidecarSetNotUpgradablePodsReason); len(got) != tc.told {
				t.Errorf("events %v, want %d", got, tc.told)
			}
		})
	}
}

// The condition is written after the update of the pod, so a write of it that fails is tried again.
func TestAnUpdatedPodSaysThatItIsUpgradable(t *testing.T) {
	w := started(t, "", 1, logs(nil))
	w.edit("logs", image("logs:2"))
	w.statusRefusal = apierrors.NewConflict(corev1.Resource("pods"), "web-0", nil)
	_, _ = w.c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs"}})
	if got := w.images("shipper"); got != "logs:2×1" || inplace.FindCondition(w.pods()[0], kruise.SidecarSetUpgradableCondition) != nil {
		t.Fatalf("the image is %s, and the condition %+v", got, inplace.FindCondition(w.pods()[0], kruise.SidecarSetUpgradableCondition))
	}
	w.statusRefusal = nil
	for range 2 {
		w.run()
		w.round("logs")
	}
	if c := inplace.FindCondition(w.pods()[0], kruise.SidecarSetUpgradableCondition); c == nil || c.Status != corev1.ConditionTrue || c.Message != `{"logs":true}` {
		t.Errorf("the condition is %+v", c)
	}
}

// Both containers of a pair take turns, and at no time does none of them have the real image.
func TestHotUpgrade(t *testing.T) {
	w := started(t, "", 1, logs(func(s *kruise.SidecarSet) {
		s.Spec.Containers[0].UpgradeStrategy = kruise.SidecarContainerUpgradeStrategy{UpgradeType: kruise.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "empty"}
	}))
	expect := func(when, first, second, working string, ready int32) {
		t.Helper()
		if w.images("shipper-1") != first+"×1" || w.images("shipper-2") != second+"×1" || podmeta.WorkingContainers(w.pods()[0])["shipper"] != working {
			t.Errorf("%s: %s, %s, and %v works", when, w.images("shipper-1"), w.images("shipper-2"), podmeta.WorkingContainers(w.pods()[0]))
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
		name, err := history.LatestRevisionName(t.Context(), w.api, "kruise-system", w.set("logs"))
		if err != nil {
			t.Fatal(err)
		}
		w.round("logs")
		if made := w.set("logs").Status.LatestRevision; made != name || (made == first) != (next == "logs:1") {
			t.Errorf("with %s the revision is %s, and was named %s before; the first was %s", next, made, name, first)
		}
	}
}
