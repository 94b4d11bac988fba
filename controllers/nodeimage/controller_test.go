// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
)

func TestTheController(t *testing.T) {
	_, api := apiserver.Serve(t)
	begun := time.Now().Truncate(time.Second)
	now := begun
	events := record.NewFakeRecorder(20)
	r := New(reconcile.Deps{Client: api, Live: api, Events: events, Now: func() time.Time { return now }})
	n := 0
	name := func() string { n++; return fmt.Sprintf("node-%d", n) }
	node := func(name string, ready bool, labels map[string]string) *corev1.Node {
		t.Helper()
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(begun)}}
		if err := api.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	reconcile := func(name string) time.Duration {
		t.Helper()
		got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		return got.RequeueAfter
	}
	find := func(name string) *kruise.NodeImage {
		t.Helper()
		o := &kruise.NodeImage{}
		err := api.Get(t.Context(), client.ObjectKey{Name: name}, o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	later := func(d time.Duration) func() {
		now = begun.Add(d)
		return func() { now = begun }
	}

	t.Run("a node has one half a minute after it is ready, with its labels", func(t *testing.T) {
		n := name()
		o := node(n, true, map[string]string{"zone": "a"})
		if after := reconcile(n); find(n) != nil || after != 30*time.Second {
			t.Errorf("at once: %v, again in %s", find(n), after)
		}
		defer later(30 * time.Second)()
		reconcile(n)
		if got := find(n); got == nil || got.Labels["zone"] != "a" {
			t.Fatalf("got %v", got)
		}
		o.Labels["zone"] = "b"
		if err := api.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		reconcile(n)
		if got := find(n); got.Labels["zone"] != "b" {
			t.Errorf("got %v", got.Labels)
		}
		if err := api.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		reconcile(n)
		if got := find(n); got != nil {
			t.Errorf("it outlives its node: %v", got)
		}
	})
	t.Run("not a node that is not ready, or has no kubelet", func(t *testing.T) {
		defer later(time.Hour)()
		idle, virtual := name(), name()
		node(idle, false, nil)
		node(virtual, true, map[string]string{"type": "virtual-kubelet"})
		reconcile(idle)
		reconcile(virtual)
		if find(idle) != nil || find(virtual) != nil {
			t.Error("one of them has one")
		}
	})
	t.Run("one that is marked stays without a node", func(t *testing.T) {
		fake := name()
		if err := api.Create(t.Context(), &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: fake, Labels: map[string]string{kruise.FakeNodeImageKey: "true"}}}); err != nil {
			t.Fatal(err)
		}
		reconcile(fake)
		if find(fake) == nil {
			t.Error("it is gone")
		}
	})

	created := ptr.To(metav1.NewTime(begun))
	tag := func(name string, deadline *int64) kruise.ImageTagSpec {
		return kruise.ImageTagSpec{Tag: name, CreatedAt: created, PullPolicy: &kruise.ImageTagPullPolicy{TTLSecondsAfterFinished: ptr.To[int32](60), ActiveDeadlineSeconds: deadline}}
	}
	pulling := func(statuses []kruise.ImageTagStatus, tags ...kruise.ImageTagSpec) string {
		t.Helper()
		n := name()
		node(n, true, nil)
		o := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: n}}
		o.Spec.Images = map[string]kruise.ImageSpec{"nginx": {Tags: tags}}
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if statuses != nil {
			o.Status.ImageStatuses = map[string]kruise.ImageStatus{"nginx": {Tags: statuses}}
			if err := api.Status().Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	t.Run("a tag goes when its time after the end is over", func(t *testing.T) {
		n := pulling([]kruise.ImageTagStatus{{Tag: "1", Phase: kruise.ImagePhaseSucceeded, CompletionTime: created}, {Tag: "2", Phase: kruise.ImagePhaseSucceeded, CompletionTime: created, Version: 4}}, tag("1", nil), tag("2", nil))
		if after := reconcile(n); after != time.Minute || len(find(n).Spec.Images["nginx"].Tags) != 2 {
			t.Errorf("again in %s", after)
		}
		defer later(time.Minute)()
		reconcile(n)
		if got := find(n).Spec.Images["nginx"].Tags; len(got) != 1 || got[0].Tag != "2" {
			t.Errorf("got %v", got) // 2 was pulled in another version
		}
	})
	t.Run("an image without tags goes", func(t *testing.T) {
		old := tag("1", nil)
		old.CreatedAt = nil
		n := pulling(nil, old)
		reconcile(n)
		if got := find(n).Spec.Images; len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
	owned := func(name string, jobs ...*kruise.ImagePullJob) kruise.ImageTagSpec {
		out := tag(name, nil)
		for _, job := range jobs {
			out.OwnerReferences = append(out.OwnerReferences, corev1.ObjectReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Namespace: "default", Name: job.Name, UID: job.UID})
		}
		return out
	}
	job := func(name, image string, kind kruise.CompletionPolicyType) *kruise.ImagePullJob {
		t.Helper()
		o := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		o.Spec.Image, o.Spec.CompletionPolicy.Type = image, kind
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	t.Run("an owner that is gone goes, and the tag with the last of them", func(t *testing.T) {
		here, gone := job("here", "nginx:1", kruise.NeverCompletionPolicyType), job("gone", "nginx:2", kruise.NeverCompletionPolicyType)
		if err := api.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		again := job("gone", "nginx:3", kruise.NeverCompletionPolicyType) // another one of its name
		other := tag("4", nil)
		other.OwnerReferences = []corev1.ObjectReference{{Kind: "Other", Name: "x", UID: "u"}}
		n := pulling(nil, owned("1", here, gone), owned("2", gone), owned("3", again), other, tag("5", nil))
		reconcile(n)
		var got []string
		for _, tag := range find(n).Spec.Images["nginx"].Tags {
			got = append(got, fmt.Sprint(tag.Tag, len(tag.OwnerReferences)))
		}
		if fmt.Sprint(got) != "[11 31 41 50]" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a tag goes of a job that asks for another image since", func(t *testing.T) {
		edited, other := job("edited", "nginx:1", kruise.NeverCompletionPolicyType), job("same", "nginx:1", kruise.NeverCompletionPolicyType)
		n := pulling(nil, owned("1", edited, other), owned("2", edited), owned("3", edited))
		before := edited.DeepCopy()
		edited.Spec.Image = "docker.io/library/nginx:2"
		if err := api.Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		if !anotherImage(event.UpdateEvent{ObjectOld: before, ObjectNew: edited}) || anotherImage(event.UpdateEvent{ObjectOld: edited, ObjectNew: edited}) {
			t.Error("nothing looks at the NodeImages of the job")
		}
		reconcile(n)
		var got []string
		for _, tag := range find(n).Spec.Images["nginx"].Tags {
			got = append(got, fmt.Sprint(tag.Tag, len(tag.OwnerReferences)))
		}
		if fmt.Sprint(got) != "[11 21]" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a tag of a job that ends stays until it has", func(t *testing.T) {
		ends, never := job("ends", "nginx:1", kruise.AlwaysCompletionPolicyType), job("never", "nginx:2", kruise.NeverCompletionPolicyType)
		pulled := func(tag string) kruise.ImageTagStatus {
			return kruise.ImageTagStatus{Tag: tag, Phase: kruise.ImagePhaseSucceeded, CompletionTime: created}
		}
		n := pulling([]kruise.ImageTagStatus{pulled("1"), pulled("2")}, owned("1", ends), owned("2", never))
		defer later(time.Hour)()
		if again := reconcile(n); again != unfinishedAgain {
			t.Errorf("again in %s", again)
		}
		if got := find(n).Spec.Images["nginx"].Tags; len(got) != 1 || got[0].Tag != "1" {
			t.Errorf("got %v", got)
		}
		ends.Status.CompletionTime = created
		if err := api.Status().Update(t.Context(), ends); err != nil {
			t.Fatal(err)
		}
		reconcile(n)
		if got := find(n).Spec.Images; len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
	for what, tc := range map[string]struct {
		statuses []kruise.ImageTagStatus
		deadline *int64
		later    time.Duration
		want     string
	}{
		"a node that says nothing":                     {nil, nil, 10 * time.Minute, "node has not responded for a long time"},
		"a node that may still say something":          {nil, nil, 10*time.Minute - time.Second, ""},
		"a pull that has no deadline":                  {[]kruise.ImageTagStatus{{Tag: "1", Phase: kruise.ImagePhasePulling}}, nil, time.Hour, ""},
		"a pull ten minutes after its deadline":        {[]kruise.ImageTagStatus{{Tag: "1", Phase: kruise.ImagePhasePulling}}, ptr.To[int64](60), 11 * time.Minute, "pulling exceeds the activeDeadlineSeconds"},
		"a pull of another version":                    {[]kruise.ImageTagStatus{{Tag: "1", Phase: kruise.ImagePhaseSucceeded, Version: 7, CompletionTime: created}}, nil, 10 * time.Minute, "node has not responded for a long time"},
		"a pull within ten minutes after its deadline": {[]kruise.ImageTagStatus{{Tag: "1", Phase: kruise.ImagePhasePulling}}, ptr.To[int64](60), 11*time.Minute - time.Second, ""},
	} {
		t.Run(what, func(t *testing.T) {
			n := pulling(tc.statuses, tag("1", tc.deadline))
			defer later(tc.later)()
			reconcile(n)
			got := find(n).Status
			failed := ""
			if s := got.ImageStatuses["nginx"].Tags; len(s) > 0 && s[0].Phase == kruise.ImagePhaseFailed {
				failed = s[0].Message
			}
			if failed != tc.want || (tc.want != "") != (got.Failed == 1) {
				t.Errorf("got %+v", got)
			}
			if tc.want != "" {
				if told := <-events.Events; told != "Warning PullImageFailed Failed to pull image nginx:1 on node "+n+" for "+tc.want {
					t.Errorf("got %q", told)
				}
			}
		})
	}
}

func TestANodeCountsWhenItsLabelsOrItsReadinessChange(t *testing.T) {
	node := func(label string, ready corev1.ConditionStatus, beat int64) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": label}}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Unix(beat, 0), LastTransitionTime: metav1.Unix(1, 0),
		}}}}
	}
	for name, tc := range map[string]struct {
		fresh *corev1.Node
		want  bool
	}{
		"a heartbeat":     {node("a", corev1.ConditionTrue, 9), false},
		"another label":   {node("b", corev1.ConditionTrue, 0), true},
		"it is not ready": {node("a", corev1.ConditionFalse, 0), true},
	} {
		if got := isRelevantUpdate(event.UpdateEvent{ObjectOld: node("a", corev1.ConditionTrue, 0), ObjectNew: tc.fresh}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
