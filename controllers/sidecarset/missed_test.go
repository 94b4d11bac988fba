// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// at is so many seconds after some time.
func at(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(1_700_000_000+seconds, 0)) }

// changed is an API server that says when a user changed an object last.
type changed struct {
	client.Reader
	last metav1.Time
}

func (c changed) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetName(key.Name)
	into.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Time: ptr.To(c.last)}, {Manager: "kruise-manager", Subresource: "status", Time: ptr.To(at(1000))},
	})
	return nil
}

// bare is a pod without any sidecar, created so many seconds after some time.
func bare(name string, seconds int64, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: at(seconds), Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

// since is a SidecarSet that was created after 10 seconds.
func since(change func(*kruise.SidecarSet)) *kruise.SidecarSet {
	return logs(func(s *kruise.SidecarSet) {
		s.CreationTimestamp = at(10)
		if change != nil {
			change(s)
		}
	})
}

func TestPodsThatLackTheirSidecarsAreFound(t *testing.T) {
	skip := "package extend.injection.x\nskip contains {\"set\": \"logs\", \"reason\": \"R\", \"message\": \"m\"} if input.pod.labels.kind == \"batch\"\n"
	for name, tc := range map[string]struct {
		set   func(*kruise.SidecarSet)
		pod   func(*corev1.Pod)
		age   int64
		rules string
		more  []client.Object
		want  string // NoAnswer, SidecarSetChanged, PodOlder
		says  string
	}{
		"created while no webhook answered":     {age: 30, want: "1 0 0", says: "1 pods lack the containers that they should have been given: shop/web-0 (NoAnswer)."},
		"created before the SidecarSet changed": {age: 15, want: "0 1 0", says: "1 pods lack the containers that they should have been given: shop/web-0 (SidecarSetChanged)."},
		"older than the SidecarSet":             {age: 5, want: "0 0 1"},
		"not selected":                          {age: 30, pod: func(p *corev1.Pod) { p.Labels["app"] = "db" }, want: "0 0 0"},
		"ended":                                 {age: 30, pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, want: "0 0 0"},
		"static":                                {age: 30, pod: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }, want: "0 0 0"},
		"left out by a rule":                    {age: 30, rules: skip, pod: func(p *corev1.Pod) { p.Labels["kind"] = "batch" }, want: "0 0 0"},
		"not left out by a rule":                {age: 30, rules: skip, want: "1 0 0", says: "NoAnswer"},
		"left out by a rule of containers of which one became an init container": {age: 30, want: "0 0 0",
			rules: "package extend.injection.x\nskip contains {\"set\": \"logs\", \"reason\": \"R\", \"message\": \"m\"} if {\n\tsome c in input.pod.containers\n\tc.image == \"mesh:1\"\n}\n",
			pod: func(p *corev1.Pod) {
				p.Annotations = map[string]string{kruise.ContainerLaunchPriorityNativeKey: "mesh,main"}
				p.Spec.InitContainers = []corev1.Container{{Name: "mesh", Image: "mesh:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
			}},
		"injection is paused": {age: 30, set: func(s *kruise.SidecarSet) { s.Spec.InjectionStrategy.Paused = true }, want: "0 0 0"},
		"in a namespace that is not sent": {age: 30, want: "0 0 0", pod: func(p *corev1.Pod) { p.Namespace = "quiet" },
			more: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "quiet", Labels: map[string]string{"sent": "never"}}}}},
		"in another namespace than the SidecarSet is for": {age: 30, want: "0 0 0", set: func(s *kruise.SidecarSet) {
			s.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "bank"}}
		}},
		"a SidecarSet without a value of a label": {age: 30, want: "1 0 0", says: "NoAnswer", set: func(s *kruise.SidecarSet) {
			s.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
		}},
		"a canary stands in": {age: 30, want: "0 0 0", more: []client.Object{logs(func(s *kruise.SidecarSet) {
			s.Name, s.UID, s.Annotations = "canary", "canary", map[string]string{kruise.SidecarSetCanaryKey: "true", kruise.SidecarSetBaseKey: "logs"}
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.rules, append(tc.more, since(tc.set), bare("web-0", tc.age, tc.pod))...)
			w.missed.Live = changed{last: at(20)}
			w.round("logs")
			if got := fmt.Sprint(w.lacks[ReasonNoAnswer], w.lacks[ReasonChanged], w.lacks[ReasonOlder]); got != tc.want {
				t.Errorf("counted are %s, want %s", got, tc.want)
			}
			c := meta.FindStatusCondition(w.set("logs").Status.Conditions, kruise.SidecarSetInjectionMissed)
			if (c != nil) != (tc.says != "") || c != nil && !strings.Contains(c.Message, tc.says) {
				t.Errorf("the condition is %+v, want %q", c, tc.says)
			}
			if events := w.told(kruise.SidecarSetInjectionMissed); (len(events) == 1) != (tc.says != "") {
				t.Errorf("events %q", events)
			}
		})
	}
}

// Of two SidecarSets with a container of one name the second by name is told that pods have that of the first.
func TestAConflictIsToldOnTheObject(t *testing.T) {
	first := logs(func(s *kruise.SidecarSet) { s.Name, s.UID = "agent", "agent" })
	pod := webs(t, 1, first)[0]
	pod.SetCreationTimestamp(at(30))
	w := newWorld(t, "", since(nil), first, pod)
	w.missed.Live = changed{last: at(20)}
	w.round("logs")
	w.round("agent")
	c := meta.FindStatusCondition(w.set("logs").Status.Conditions, kruise.SidecarSetConflict)
	if c == nil || !strings.Contains(c.Message, "1 pods have the containers of another SidecarSet in place of these, such as: SidecarSet agent, which comes earlier, has a container shipper") {
		t.Fatalf("%+v", c)
	}
	if len(w.told(kruise.SidecarSetContainerNameTaken)) > 0 || meta.FindStatusCondition(w.set("agent").Status.Conditions, kruise.SidecarSetConflict) != nil {
		t.Error("the first is told of a conflict too")
	}
	if err := w.api.Delete(t.Context(), w.set("agent")); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(judgedFor)
	w.round("logs")
	conditions := w.set("logs").Status.Conditions
	if meta.FindStatusCondition(conditions, kruise.SidecarSetConflict) != nil || meta.FindStatusCondition(conditions, kruise.SidecarSetInjectionMissed) == nil {
		t.Errorf("without the first there is %+v", conditions)
	}
}

func TestAPodThatIsGoneIsNotMissed(t *testing.T) {
	w := newWorld(t, "", since(nil), bare("web-0", 30, nil))
	w.missed.Live = changed{last: at(20)}
	q := &asked{}
	w.c.PodEvents().Create(t.Context(), event.CreateEvent{Object: w.pods()[0]}, q)
	if len(q.names) != 1 || q.names[0] != "logs" {
		t.Fatalf("a pod that lacks its sidecar asks to look at %v", q.names)
	}
	w.round("logs")
	f := &rollout.Facts{}
	f.Subject.Name, f.Found = "logs", &findings{pods: []uninjectedPod{{pod: w.pods()[0], reason: ReasonNoAnswer}}}
	a, ok := w.kind.ExplainMissing(f, "shop", "web-0")
	if _, other := w.kind.ExplainMissing(f, "shop", "web-1"); !ok || other || !strings.Contains(a.Message, "No webhook answered when the pod was created") {
		t.Errorf("it is explained as %+v", a)
	}
	if err := w.api.Delete(t.Context(), w.pods()[0]); err != nil {
		t.Fatal(err)
	}
	w.round("logs")
	if c := meta.FindStatusCondition(w.set("logs").Status.Conditions, kruise.SidecarSetInjectionMissed); c != nil || w.lacks[ReasonNoAnswer] != 0 {
		t.Errorf("there is %+v, and %v", c, w.lacks)
	}
}

// One pod at a time is evicted, of those that come again, and only where the SidecarSet asks for it and no policy holds it.
func TestPodsThatLackTheirSidecarsAreEvictedIfAsked(t *testing.T) {
	owned := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: ptr.To(true)}}
	}
	asks := func(s *kruise.SidecarSet) {
		s.Annotations = map[string]string{kruise.SidecarSetRecreateMissedKey: "true"}
	}
	hold := "package extend.rollout.x\nhold contains {\"reason\": \"Freeze\", \"message\": \"m\"} if input.workload.kind == \"SidecarSet\"\n"
	for name, tc := range map[string]struct {
		set    func(*kruise.SidecarSet)
		pod    func(*corev1.Pod)
		rules  string
		rounds int
		left   int
	}{
		"not asked":                 {nil, owned, "", 2, 3},
		"asked":                     {asks, owned, "", 1, 2},
		"asked, and a minute later": {asks, owned, "", 2, 1},
		"none that has no owner":    {asks, nil, "", 3, 3},
		"held":                      {asks, owned, hold, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			set := since(tc.set)
			objects := []client.Object{set}
			for i := range 3 {
				objects = append(objects, bare(fmt.Sprint("bare-", i), 30, tc.pod))
			}
			if tc.rules != "" { // there is something to hold
				objects = append(objects, webs(t, 1, since(func(s *kruise.SidecarSet) { s.Spec.Containers[0].Image = "logs:0" }))...)
				tc.left++
			}
			w := newWorld(t, tc.rules, objects...)
			w.missed.Live = changed{last: at(20)}
			for range tc.rounds {
				w.round("logs")
			}
			if got := len(w.pods()); got != tc.left {
				t.Errorf("%d pods are left, want %d", got, tc.left)
			}
			if events := w.told(kruise.SidecarSetRecreatedReason); tc.rules == "" && len(events) != 3-tc.left {
				t.Errorf("events %q", events)
			}
		})
	}
}

// A freeze holds evictions though nothing is to be updated, and so do pausing and a rule that fails.
func TestEvictionsOfPodsThatLackTheirSidecarsAreHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		rules string
		edit  func(*kruise.SidecarSet)
	}{
		"a freeze":          {"package extend.rollout.x\nhold contains {\"reason\": \"Freeze\", \"message\": \"m\"}\n", nil},
		"a rule that fails": {"package extend.rollout.x\nhold contains {\"reason\": to_number(\"x\"), \"message\": \"m\"}\n", nil},
		"a hold of pods":    {"package extend.rollout.x\nhold contains {\"reason\": \"One\", \"message\": \"m\", \"pod\": pod.name} if some pod in input.pods\n", nil},
		"paused":            {"", func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.Paused = true }},
	} {
		t.Run(name, func(t *testing.T) {
			set := since(func(s *kruise.SidecarSet) {
				s.Annotations = map[string]string{kruise.SidecarSetRecreateMissedKey: "true"}
				if tc.edit != nil {
					tc.edit(s)
				}
			})
			w := newWorld(t, tc.rules, set, bare("bare-0", 30, func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: ptr.To(true)}}
			}))
			w.missed.Live = changed{last: at(20)}
			for range 3 {
				w.round("logs")
			}
			if n := len(w.pods()); n != 1 {
				t.Errorf("%d pods are left", n)
			}
			if events := w.told(kruise.SidecarSetRecreationHeldReason); len(events) != 1 {
				t.Errorf("events %q", events)
			}
		})
	}
}

// A replacement that lacks the containers again ends the evictions, and the SidecarSet says so.
func TestAReplacementThatLacksItsSidecarAgainEndsEvictions(t *testing.T) {
	owned := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: ptr.To(true)}}
	}
	set := since(func(s *kruise.SidecarSet) {
		s.Annotations = map[string]string{kruise.SidecarSetRecreateMissedKey: "true"}
	})
	w := newWorld(t, "", set, bare("bare-0", 30, owned), bare("bare-1", 30, owned))
	w.missed.Live = changed{last: at(20)}
	evicted, made := 0, 0
	for range 10 {
		w.round("logs")
		for n := len(w.pods()); n < 2; n++ { // the owner makes another one, past the webhook
			evicted, made = evicted+1, made+1
			again := bare(fmt.Sprint("again-", made), 30, owned)
			again.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
			if err := w.api.Create(t.Context(), again); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := meta.FindStatusCondition(w.set("logs").Status.Conditions, kruise.SidecarSetMissedRecreated)
	if evicted != 1 || c == nil || c.Reason != kruise.SidecarSetRecreatedInVainReason {
		t.Errorf("%d pods were evicted, and there is %+v", evicted, c)
	}
	if events := w.told(kruise.SidecarSetRecreatedInVainReason); len(events) != 1 {
		t.Errorf("events %q", events)
	}
}
