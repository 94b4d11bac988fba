// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/apiserver"
)

const (
	done    = kruise.ImagePhaseSucceeded
	gaveUp  = kruise.ImagePhaseFailed
	started = kruise.ImagePhasePulling
)

func TestTheController(t *testing.T) {
	_, api := apiserver.Serve(t)
	n := 0
	start := func(name string, nodes int, f func(w *world), rules ...string) {
		t.Run(name, func(t *testing.T) {
			n++
			f(begin(t, api, fmt.Sprintf("ns-%d", n), nodes, rules...))
		})
	}

	start("as many nodes pull at once as the job says, by name, until all have the image", 5, func(w *world) {
		w.job(nil)
		w.reconcile()
		w.expect([]int{0, 1}, 5, 2, 0, 0, "job is running, no progress")
		if job := w.get(); job.Status.StartTime == nil || !slices.Contains(job.Finalizers, kruise.ImagePullJobFinalizer) {
			t.Errorf("got %+v", job)
		}
		w.tell(started, 0, 1)
		w.reconcile()
		w.expect([]int{0, 1}, 5, 2, 0, 0, "job is running, no progress")
		w.tell(done, 1)
		w.restart() // which repeats nothing
		w.reconcile()
		w.expect([]int{0, 1, 2}, 5, 2, 1, 0, "job is running, progress 20.0%")
		w.tell(gaveUp, 0, 2)
		w.reconcile()
		w.expect([]int{0, 1, 2, 3, 4}, 5, 2, 1, 2, "job is running, progress 60.0%")
		w.tell(done, 3, 4)
		w.reconcile()
		w.expect([]int{0, 1, 2, 3, 4}, 5, 0, 3, 2, "job has completed")
		job := w.get()
		if !slices.Equal(job.Status.FailedNodes, []string{w.node(0), w.node(2)}) || job.Status.CompletionTime == nil || len(job.Finalizers) > 0 {
			t.Errorf("got %+v", job)
		}
	})

	start("a tag says who wants it, and for how long", 2, func(w *world) {
		w.job(func(job *kruise.ImagePullJob) {
			job.Spec.CompletionPolicy.ActiveDeadlineSeconds = ptr.To[int64](1200)
			job.Spec.SandboxConfig = &kruise.SandboxConfig{Labels: map[string]string{"a": "b"}}
		})
		w.reconcile()
		spec := w.image(0).Spec.Images["nginx"]
		tag := spec.Tags[0]
		want := corev1.ObjectReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Namespace: w.ns, Name: "warm", UID: w.get().UID}
		if len(tag.OwnerReferences) != 1 || tag.OwnerReferences[0] != want || tag.CreatedAt == nil || tag.Version != 0 ||
			tag.ImagePullPolicy != kruise.PullIfNotPresent || spec.SandboxConfig.Labels["a"] != "b" {
			t.Errorf("got %+v", spec)
		}
		if p := tag.PullPolicy; *p.TimeoutSeconds != 60 || *p.BackoffLimit != 2 || *p.ActiveDeadlineSeconds != 1200 || *p.TTLSecondsAfterFinished != 1500 {
			t.Errorf("got %+v", p)
		}
	})

	start("a job that never ends has its tags for about a day", 2, func(w *world) {
		w.job(func(job *kruise.ImagePullJob) { job.Spec.CompletionPolicy.Type = kruise.NeverCompletionPolicyType })
		w.reconcile()
		if p := w.image(0).Spec.Images["nginx"].Tags[0].PullPolicy; *p.ActiveDeadlineSeconds != 1800 || *p.TTLSecondsAfterFinished != 86400-600 {
			t.Errorf("got %+v", p)
		}
		w.tell(done, 0, 1)
		w.reconcile()
		w.expect([]int{0, 1}, 2, 0, 2, 0, "job is running, progress 100.0%")
		if job := w.get(); job.Status.CompletionTime != nil || len(job.Finalizers) != 1 {
			t.Errorf("got %+v", job)
		}
	})

	start("a tag that is new goes on from the version that the node tells of", 1, func(w *world) {
		o := w.image(0)
		o.Status.ImageStatuses = map[string]kruise.ImageStatus{"nginx": {Tags: []kruise.ImageTagStatus{{Tag: "1.28", Version: 6, Phase: done}}}}
		if err := api.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.job(nil)
		w.reconcile()
		if tag := w.image(0).Spec.Images["nginx"].Tags[0]; tag.Version != 7 {
			t.Errorf("got %+v", tag)
		}
		w.expect([]int{0}, 1, 1, 0, 0, "job is running, no progress")
	})

	for name, tc := range map[string]struct {
		edit func(*world, *kruise.ImagePullJobSpec)
		want []int
	}{
		"nodes by name, those that exist": {func(w *world, s *kruise.ImagePullJobSpec) {
			s.Selector = &kruise.ImagePullJobNodeSelector{Names: []string{w.node(3), w.node(1), "none"}}
		}, []int{1, 3}},
		"nodes by label": {func(w *world, s *kruise.ImagePullJobSpec) {
			s.Selector.MatchLabels[corev1.LabelTopologyZone] = w.ns + "-z1"
		}, []int{2, 3}},
		"nodes of pods that are active": {func(w *world, s *kruise.ImagePullJobSpec) {
			s.Selector, s.PodSelector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			for i, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded, corev1.PodPending, corev1.PodRunning} {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprint("p", i), Labels: map[string]string{"app": "web"}}}
				pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
				pod.Spec.NodeName = w.node(i)
				if i == 3 {
					pod.Labels["app"] = "other"
				}
				if err := api.Create(w.Context(), pod); err != nil {
					w.Fatal(err)
				}
				pod.Status.Phase = phase
				if err := api.Status().Update(w.Context(), pod); err != nil {
					w.Fatal(err)
				}
			}
		}, []int{0, 2}},
		"none while it is paused":  {func(_ *world, s *kruise.ImagePullJobSpec) { s.Parallelism = ptr.To(intstr.FromInt32(0)) }, nil},
		"one at a time by default": {func(_ *world, s *kruise.ImagePullJobSpec) { s.Parallelism = nil }, []int{0}},
	} {
		start(name, 4, func(w *world) {
			w.job(func(job *kruise.ImagePullJob) { tc.edit(w, &job.Spec) })
			w.reconcile()
			if got := w.asked(); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}

	start("a job without nodes is complete", 0, func(w *world) {
		w.job(nil)
		w.reconcile()
		w.expect(nil, 0, 0, 0, 0, "job has completed")
	})

	start("at its deadline what has not ended has failed", 3, func(w *world) {
		w.job(func(job *kruise.ImagePullJob) { job.Spec.CompletionPolicy.ActiveDeadlineSeconds = ptr.To[int64](100) })
		if again := w.reconcile(); again != 100*time.Second {
			t.Errorf("again in %s", again)
		}
		w.tell(done, 0)
		w.now = w.now.Add(100 * time.Second)
		w.reconcile()
		w.expect([]int{0, 1}, 3, 0, 1, 2, "job exceeds activeDeadlineSeconds")
		if got := w.get(); !slices.Equal(got.Status.FailedNodes, []string{w.node(1), w.node(2)}) || got.Status.CompletionTime == nil {
			t.Errorf("got %+v", got.Status)
		}
	})

	start("it goes when its time after the end is over", 0, func(w *world) {
		w.job(func(job *kruise.ImagePullJob) { job.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](30) })
		if again := w.reconcile(); again != 30*time.Second {
			t.Errorf("again in %s", again)
		}
		w.now = w.now.Add(30 * time.Second)
		w.reconcile()
		if w.get() != nil {
			t.Error("it is still there")
		}
	})

	start("one that is deleted is let go", 2, func(w *world) {
		w.job(nil)
		w.reconcile()
		if err := api.Delete(t.Context(), w.get()); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		if got := w.get(); got != nil {
			t.Errorf("got %+v", got)
		}
	})

	start("a job that a policy holds says so, and goes on after it", 4, func(w *world) {
		w.job(nil)
		if again := w.reconcile(); again != lookAgain {
			t.Errorf("again in %s", again)
		}
		w.expect(nil, 4, 0, 0, 0, "job is running, no progress")
		c := meta.FindStatusCondition(w.get().Status.Conditions, kruise.ImagePullJobHeld)
		if c == nil || c.Reason != "Night" || c.Message != "warm waits. (rule extend.node.x)" {
			t.Fatalf("got %+v", c)
		}
		if told := <-w.events.Events; told != "Warning PullHeld warm waits. (rule extend.node.x)" || len(w.events.Events) > 0 {
			t.Errorf("got %q", told)
		}
		job := w.get()
		job.Annotations = map[string]string{"go": "on"}
		if err := api.Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		w.expect([]int{0, 1}, 4, 2, 0, 0, "job is running, no progress")
		if c := w.get().Status.Conditions; meta.FindStatusCondition(c, kruise.ImagePullJobHeld) != nil {
			t.Errorf("got %+v", c)
		}
	}, `hold contains {"reason": "Night", "message": sprintf("%s waits.", [input.job.name])} if not input.job.annotations.go`)

	start("a zone has no more pulls than a policy leaves room for", 6, func(w *world) {
		w.job(func(job *kruise.ImagePullJob) { job.Spec.Parallelism = ptr.To(intstr.FromInt32(10)) })
		w.reconcile()
		w.expect([]int{0, 2, 4}, 6, 3, 0, 0, "job is running, no progress")
		w.tell(done, 2)
		w.reconcile()
		w.expect([]int{0, 2, 3, 4}, 6, 3, 1, 0, "job is running, progress 16.7%")
	}, `hold contains {"reason": "Busy", "message": "One of a zone at a time.", "where": {"zone": zone}, "room": 1 - nodes.busy} if some zone, nodes in input.groups.zone`)

	start("nodes go in the order of policies", 4, func(w *world) {
		w.job(nil)
		w.reconcile()
		w.expect([]int{2, 3}, 4, 2, 0, 0, "job is running, no progress")
	}, `rank := {node.name: -1 | some node in input.nodes; endswith(node.zone, "-z1")}`)

	start("nodes that are denied the image have failed", 4, func(w *world) {
		w.job(nil)
		w.reconcile()
		w.expect([]int{2, 3}, 4, 2, 0, 2, "job is running, progress 50.0%")
		w.tell(done, 2, 3)
		w.reconcile()
		w.expect([]int{2, 3}, 4, 0, 2, 2, "job has completed")
		c := meta.FindStatusCondition(w.get().Status.Conditions, kruise.ImagePullJobDenied)
		if c == nil || c.Message != "Not in z0. (rule extend.node.x)" || !slices.Equal(w.get().Status.FailedNodes, []string{w.node(0), w.node(1)}) {
			t.Errorf("got %+v", w.get().Status)
		}
	}, `deny contains {"reason": "Zone", "message": "Not in z0.", "node": node.name} if { some node in input.nodes; endswith(node.zone, "-z0") }`)

	start("a job that is denied has failed", 2, func(w *world) {
		w.job(nil)
		w.reconcile()
		w.expect(nil, 2, 0, 0, 2, "job has completed")
	}, `deny contains {"reason": "Old", "message": "Too old."} if input.job.tag == "1.28"`)

	start("no more nodes pull than the parallelism, whatever an answer says", 4, func(w *world) {
		w.job(nil)
		w.reconcile()
		w.reconcile()
		w.expect([]int{0, 1}, 4, 2, 0, 0, "job is running, no progress")
	}, `rank := {node.name: -1000 | some node in input.nodes}`)
}

func TestWritesThatTheCacheDoesNotShowCount(t *testing.T) {
	image := func(uid types.UID, version string) *kruise.NodeImage {
		return &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: uid, ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		cached, want *kruise.NodeImage
		still        int
	}{
		"the cache is behind":       {image("a", "9"), image("a", "10"), 1},
		"the cache has caught up":   {image("a", "10"), image("a", "10"), 0},
		"the cache is ahead":        {image("a", "11"), image("a", "11"), 0},
		"it is another of its name": {image("b", "7"), image("b", "7"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := &written{nodes: map[string]*kruise.NodeImage{}}
			w.rememberWrite(image("a", "10"))
			got := []*kruise.NodeImage{tc.cached}
			w.overlayWrites(got)
			if got[0].UID != tc.want.UID || got[0].ResourceVersion != tc.want.ResourceVersion || len(w.nodes) != tc.still {
				t.Errorf("got %+v, and %d are remembered", got[0].ObjectMeta, len(w.nodes))
			}
		})
	}
	w := &written{nodes: map[string]*kruise.NodeImage{}}
	w.rememberWrite(image("a", "10"))
	w.overlayWrites(nil)
	if len(w.nodes) > 0 {
		t.Error("one that is gone is remembered")
	}
}
