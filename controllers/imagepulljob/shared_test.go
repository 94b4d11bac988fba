// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// Jobs that share a tag, and edits of jobs.
func TestPullsAreMadeAsTheJobAsks(t *testing.T) {
	_, api := apiserver.Serve(t)
	n := 0
	start := func(name string, nodes int, f func(w *world)) {
		t.Run(name, func(t *testing.T) {
			n++
			f(begin(t, api, fmt.Sprintf("shared-%d", n), nodes))
		})
	}
	other := func(w *world, edit func(*kruise.ImagePullJob)) (*kruise.ImagePullJob, func()) {
		w.Helper()
		job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "other"}, Spec: *w.get().Spec.DeepCopy()}
		edit(job)
		if err := api.Create(t.Context(), job); err != nil {
			w.Fatal(err)
		}
		return job, func() {
			for range 3 {
				if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}); err != nil {
					w.Fatal(err)
				}
			}
		}
	}
	policy := func(tag kruise.ImageTagSpec) string {
		p := tag.PullPolicy
		return fmt.Sprintf("%s %d s, %d times, %d s in all, %d s after", tag.ImagePullPolicy, *p.TimeoutSeconds, *p.BackoffLimit, ptr.Deref(p.ActiveDeadlineSeconds, -1), *p.TTLSecondsAfterFinished)
	}

	start("a tag that another job wants is pulled again for this one, as it asks", 1, func(w *world) {
		w.job(nil)
		w.reconcile()
		w.tell(done, 0)
		w.reconcile()
		_, reconcileOther := other(w, func(job *kruise.ImagePullJob) {
			job.Spec.PullPolicy = &kruise.PullPolicy{TimeoutSeconds: ptr.To[int32](30), BackoffLimit: ptr.To[int32](1)}
			job.Spec.CompletionPolicy.ActiveDeadlineSeconds, job.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int64](50), ptr.To[int32](7)
			job.Spec.ImagePullPolicy, job.Spec.SandboxConfig = kruise.PullAlways, &kruise.SandboxConfig{Labels: map[string]string{"a": "b"}}
		})
		w.now = w.now.Add(time.Hour)
		reconcileOther()
		spec := w.image(0).Spec.Images["nginx"]
		tag := spec.Tags[0]
		if got := policy(tag); got != "Always 30 s, 1 times, 50 s in all, 307 s after" || spec.SandboxConfig.Labels["a"] != "b" {
			t.Errorf("got %s, %+v", got, spec)
		}
		if tag.Version != 1 || len(tag.OwnerReferences) != 2 || tag.OwnerReferences[1].Name != "other" || !tag.CreatedAt.Time.Equal(w.now) {
			t.Errorf("got %+v", tag)
		}
	})

	start("the tag of a job that never ends is kept for its day beside a job that ends", 1, func(w *world) {
		w.job(func(job *kruise.ImagePullJob) { job.Spec.CompletionPolicy.Type = kruise.NeverCompletionPolicyType })
		w.reconcile()
		w.tell(done, 0)
		_, reconcileOther := other(w, func(job *kruise.ImagePullJob) { job.Spec.CompletionPolicy.Type = kruise.AlwaysCompletionPolicyType })
		reconcileOther()
		w.reconcile()
		if got := policy(w.image(0).Spec.Images["nginx"].Tags[0]); got != "IfNotPresent 60 s, 2 times, -1 s in all, 85800 s after" {
			t.Errorf("got %s", got)
		}
	})

	start("a pull that has failed by the policy of another job is made once more by that of a job with more patience", 1, func(w *world) {
		w.job(nil)
		w.reconcile()
		_, reconcileOther := other(w, func(job *kruise.ImagePullJob) {
			job.Spec.PullPolicy = &kruise.PullPolicy{TimeoutSeconds: ptr.To[int32](5), BackoffLimit: ptr.To[int32](0)}
		})
		reconcileOther()
		w.reconcile() // which leaves the tag to the other job
		if tag := w.image(0).Spec.Images["nginx"].Tags[0]; *tag.PullPolicy.TimeoutSeconds != 5 || tag.Version != 1 {
			t.Errorf("got %+v", tag)
		}
		w.tell(gaveUp, 0)
		reconcileOther()
		w.reconcile()
		tag := w.image(0).Spec.Images["nginx"].Tags[0]
		if *tag.PullPolicy.TimeoutSeconds != 60 || tag.Version != 2 || tag.OwnerReferences[1].Name != "warm" {
			t.Errorf("got %+v", tag)
		}
		w.tell(gaveUp, 0)
		reconcileOther()
		w.reconcile()
		w.expect([]int{0}, 1, 0, 0, 1, "job has completed")
	})

	start("an edit is used by pulls that run, and none is made again for it", 3, func(w *world) {
		w.job(nil)
		w.reconcile()
		w.tell(done, 0)
		w.tell(started, 1)
		job := w.get()
		job.Spec.PullPolicy.TimeoutSeconds, job.Spec.ImagePullPolicy = ptr.To[int32](90), kruise.PullAlways
		job.Spec.CompletionPolicy.ActiveDeadlineSeconds, job.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int64](1000), ptr.To[int32](4000)
		job.Spec.SandboxConfig = &kruise.SandboxConfig{Labels: map[string]string{"a": "b"}}
		if err := api.Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		for i, want := range []string{"IfNotPresent 60 s, 2 times, -1 s in all, 4300 s after", "Always 90 s, 2 times, 1000 s in all, 4300 s after", "Always 90 s, 2 times, 1000 s in all, 4300 s after"} {
			spec := w.image(i).Spec.Images["nginx"]
			if got := policy(spec.Tags[0]); got != want || spec.Tags[0].Version != 0 || i > 0 && spec.SandboxConfig.Labels["a"] != "b" {
				t.Errorf("node %d: got %s, %+v; want %s", i, got, spec, want)
			}
		}
		version := w.image(1).ResourceVersion
		w.restart()
		w.reconcile()
		if got := w.image(1).ResourceVersion; got != version {
			t.Error("a tag that is up to date was written")
		}
	})

	start("an edit that gives more patience has pulls made once more that have failed", 2, func(w *world) {
		w.job(nil)
		w.reconcile()
		w.tell(gaveUp, 0)
		w.reconcile()
		w.expect([]int{0, 1}, 2, 1, 0, 1, "job is running, progress 50.0%")
		job := w.get()
		job.Spec.PullPolicy.BackoffLimit = ptr.To[int32](9)
		if err := api.Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		w.expect([]int{0, 1}, 2, 2, 0, 0, "job is running, no progress")
	})
}
