// SPDX-License-Identifier: Apache-2.0

package imagelistpulljob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
)

type world struct {
	*testing.T
	api    client.Client
	r      *Reconciler
	events *record.FakeRecorder
	now    time.Time
	ns     string
}

func (w *world) list(edit func(*kruise.ImageListPullJob), images ...string) {
	w.Helper()
	list := &kruise.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "warm"}}
	list.Spec.Images = images
	list.Spec.CompletionPolicy.Type = kruise.AlwaysCompletionPolicyType
	if edit != nil {
		edit(list)
	}
	if err := w.api.Create(w.Context(), list); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get() *kruise.ImageListPullJob {
	w.Helper()
	list := &kruise.ImageListPullJob{}
	err := w.api.Get(w.Context(), types.NamespacedName{Namespace: w.ns, Name: "warm"}, list)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return list
}

func (w *world) update(edit func(*kruise.ImageListPullJob)) {
	w.Helper()
	list := w.get()
	edit(list)
	if err := w.api.Update(w.Context(), list); err != nil {
		w.Fatal(err)
	}
}

func (w *world) reconcile() time.Duration {
	w.Helper()
	got, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.ns, Name: "warm"}})
	if err != nil {
		w.Fatal(err)
	}
	return got.RequeueAfter
}

// jobs are the jobs of the list, by image.
func (w *world) jobs() map[string]*kruise.ImagePullJob {
	w.Helper()
	all := &kruise.ImagePullJobList{}
	if err := w.api.List(w.Context(), all, client.InNamespace(w.ns)); err != nil {
		w.Fatal(err)
	}
	out := map[string]*kruise.ImagePullJob{}
	for i := range all.Items {
		if out[all.Items[i].Spec.Image] != nil {
			w.Errorf("there are two jobs for %s", all.Items[i].Spec.Image)
		}
		out[all.Items[i].Spec.Image] = &all.Items[i]
	}
	return out
}

func (w *world) tell(image string, active, succeeded int32, failed ...string) {
	w.Helper()
	job := w.jobs()[image]
	job.Status = kruise.ImagePullJobStatus{
		StartTime: ptr.To(metav1.NewTime(w.now)), Desired: 3, Active: active, Succeeded: succeeded, Failed: int32(len(failed)), FailedNodes: failed, //nolint:gosec // few
	}
	if err := w.api.Status().Update(w.Context(), job); err != nil {
		w.Fatal(err)
	}
}

func (w *world) expect(desired, active, completed, succeeded int32) {
	w.Helper()
	if s := w.get().Status; s.Desired != desired || s.Active != active || s.Completed != completed || s.Succeeded != succeeded || s.StartTime == nil {
		w.Errorf("the status is %+v, want %d desired, %d active, %d completed, %d succeeded", s, desired, active, completed, succeeded)
	}
}

func (w *world) told(want ...string) {
	w.Helper()
	var got []string
	for len(w.events.Events) > 0 {
		got = append(got, <-w.events.Events)
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		w.Errorf("told was %q, want %q", got, want)
	}
}

func TestTheController(t *testing.T) {
	_, api := apiserver.Serve(t)
	n := 0
	start := func(name string, f func(w *world)) {
		t.Run(name, func(t *testing.T) {
			n++
			w := &world{T: t, api: api, events: record.NewFakeRecorder(50), ns: fmt.Sprintf("ns-%d", n), now: time.Now().Truncate(time.Second)}
			if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}); err != nil {
				t.Fatal(err)
			}
			w.r = New(reconcile.Deps{Client: api, Live: api, Events: w.events, Now: func() time.Time { return w.now }})
			f(w)
		})
	}

	start("there is a job for each image, which it sums up until all have ended", func(w *world) {
		w.list(func(l *kruise.ImageListPullJob) {
			l.Spec.Parallelism = ptr.To(intstr.FromInt32(4))
			l.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](20)
		}, "a:1", "b:1")
		w.reconcile()
		w.told("Normal Successful create ImagePullJob Create 2 ImagePullJob")
		w.expect(2, 0, 0, 0)
		list, jobs := w.get(), w.jobs()
		for _, image := range []string{"a:1", "b:1"} {
			job := jobs[image]
			if job == nil || !strings.HasPrefix(job.Name, "warm-") || !metav1.IsControlledBy(job, list) || job.Spec.Parallelism.IntValue() != 4 {
				t.Fatalf("got %+v", job)
			}
			if job.Labels["controller-revision-hash"] == "" || job.Labels["controller-revision-hash"] != list.Labels["controller-revision-hash"] {
				t.Errorf("got %v, and %v of the list", job.Labels, list.Labels)
			}
			if job.Spec.CompletionPolicy.TTLSecondsAfterFinished != nil {
				t.Error("the job would go before the list, and be made again")
			}
		}
		w.reconcile()
		w.told()
		w.tell("a:1", 1, 1)
		w.tell("b:1", 0, 3)
		w.reconcile()
		w.expect(2, 1, 1, 1)
		w.tell("a:1", 0, 1, "n1", "n2")
		if again := w.reconcile(); again != 20*time.Second {
			t.Errorf("again in %s", again)
		}
		w.expect(2, 0, 2, 1)
		s := w.get().Status
		if len(s.FailedImageStatuses) != 1 || s.FailedImageStatuses[0].Name != "a:1" || s.FailedImageStatuses[0].ImagePullJob != jobs["a:1"].Name ||
			s.FailedImageStatuses[0].Message != "2 of 3 nodes have not pulled the image: n1, n2." || s.CompletionTime == nil {
			t.Errorf("got %+v", s)
		}
		w.now = w.now.Add(20 * time.Second)
		w.reconcile()
		if w.get() != nil {
			t.Error("it is still there")
		}
	})

	start("an image that leaves the list takes its job along, and one that comes has one", func(w *world) {
		w.list(nil, "a:1", "b:1")
		w.reconcile()
		gone, stays := w.jobs()["a:1"], w.jobs()["b:1"]
		w.told("Normal Successful create ImagePullJob Create 2 ImagePullJob")
		w.update(func(l *kruise.ImageListPullJob) { l.Spec.Images = []string{"b:1", "c:1"} })
		w.reconcile()
		w.told("Normal Successful delete ImagePullJob Delete ImagePullJob "+gone.Name, "Normal Successful create ImagePullJob Create 1 ImagePullJob")
		if got := w.jobs(); len(got) != 2 || got["b:1"].UID != stays.UID || got["c:1"] == nil {
			t.Errorf("got %v", got)
		}
	})

	start("another template makes other jobs", func(w *world) {
		w.list(nil, "a:1")
		w.reconcile()
		before := w.jobs()["a:1"].UID
		w.update(func(l *kruise.ImageListPullJob) { l.Spec.ImagePullPolicy = kruise.PullAlways })
		w.reconcile()
		w.reconcile()
		if got := w.jobs()["a:1"]; got == nil || got.UID == before || got.Spec.ImagePullPolicy != kruise.PullAlways {
			t.Errorf("got %+v", got)
		}
	})

	start("a job of OpenKruise by the same template stays, whatever its hash", func(w *world) {
		w.list(nil, "a:1", "b:1")
		for _, image := range []string{"a:1", "b:1"} {
			job := jobOf(w.get(), image, "5d8f4c")
			job.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](60)
			if image == "b:1" {
				job.Spec.Parallelism = ptr.To(intstr.FromInt32(7)) // of another template
			}
			if err := api.Create(t.Context(), job); err != nil {
				t.Fatal(err)
			}
		}
		was := w.jobs()
		w.reconcile()
		if got := w.jobs(); got["a:1"].UID != was["a:1"].UID || got["b:1"].UID == was["b:1"].UID {
			t.Errorf("got %v", got)
		}
	})

	start("a cache that is behind makes no job twice", func(w *world) {
		w.list(nil, "a:1", "b:1")
		w.r.Client = blind{api}
		w.reconcile()
		w.reconcile()
		if got := w.jobs(); len(got) != 2 {
			t.Errorf("got %v", got)
		}
	})

	start("one that never ends has no end", func(w *world) {
		w.list(func(l *kruise.ImageListPullJob) { l.Spec.CompletionPolicy.Type = kruise.NeverCompletionPolicyType }, "a:1")
		w.reconcile()
		w.tell("a:1", 0, 3)
		w.reconcile()
		w.expect(1, 0, 1, 1)
		if w.get().Status.CompletionTime != nil {
			t.Error("it has ended")
		}
	})

	t.Run("many nodes that failed are not all named", func(t *testing.T) {
		job := &kruise.ImagePullJob{}
		for i := range 12 {
			job.Status.FailedNodes = append(job.Status.FailedNodes, fmt.Sprint("n", i))
		}
		job.Status.Failed, job.Status.Desired = 12, 20
		if got := describeFailure(job); got != "12 of 20 nodes have not pulled the image: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 2 more, which are in the status of the ImagePullJob." {
			t.Error(got)
		}
	})
}

// blind has no jobs in its cache.
type blind struct{ client.Client }

func (b blind) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if jobs, ok := list.(*kruise.ImagePullJobList); ok {
		jobs.Items = nil
		return nil
	}
	return b.Client.List(ctx, list, opts...)
}

func TestOfTwoJobsForAnImageTheOlderOneStays(t *testing.T) {
	list := &kruise.ImageListPullJob{}
	list.Spec.Images = []string{"a:1"}
	job := func(name string, created int64) *kruise.ImagePullJob {
		out := jobOf(list, "a:1", "h")
		out.Name, out.CreationTimestamp = name, metav1.Unix(created, 0)
		return out
	}
	keep, remove, create := planJobs(list, "h", []*kruise.ImagePullJob{job("a", 9), job("c", 3), job("b", 3)})
	if len(keep) != 1 || keep[0].Name != "b" || len(remove) != 2 || len(create) != 0 {
		t.Errorf("kept are %v, removed %v, created %v", keep, remove, create)
	}
}

func TestTheHashIsOfTheTemplate(t *testing.T) {
	of := func(edit func(*kruise.ImagePullJobTemplate)) string {
		template := &kruise.ImagePullJobTemplate{PullSecrets: []string{"a"}}
		edit(template)
		got, err := hashTemplate(template)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	all := []string{
		of(func(*kruise.ImagePullJobTemplate) {}),
		of(func(x *kruise.ImagePullJobTemplate) { x.ImagePullPolicy = kruise.PullAlways }),
		of(func(x *kruise.ImagePullJobTemplate) { x.PullSecrets = nil }),
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 3 {
		t.Errorf("got %v", all)
	}
}
