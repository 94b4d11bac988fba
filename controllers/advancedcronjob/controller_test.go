// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is a cluster in memory with the schedule shop/backup, every ten minutes from 03:00 on.
type world struct {
	*testing.T
	api    client.WithWatch
	engine *engine.Engine
	events *record.FakeRecorder
	r      *Reconciler
	now    time.Time
	key    client.ObjectKey
	// created are the names of all jobs that were ever created.
	created []string
	writes  int
	refuse  func(n int) error
}

func newWorld(t *testing.T, edit func(*kruise.AdvancedCronJob), modules ...string) *world {
	t.Helper()
	e := rules.Engine(t, "")
	w := &world{T: t, engine: e, events: record.NewFakeRecorder(10_000), now: at(t, "2026-03-01T03:00:00Z"), key: client.ObjectKey{Namespace: "shop", Name: "backup"}}
	var set bundle.Set
	for i, rule := range modules {
		b, err := bundle.FromFiles(fmt.Sprint("rules-", i), map[string]string{"x.rego": fmt.Sprintf("package extend.rollout.x%d\n\n%s", i, rule)})
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, b)
	}
	if err := e.ActivateBundles(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	job := &kruise.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup", UID: "c1", CreationTimestamp: metav1.NewTime(w.now)}}
	job.Spec = kruise.AdvancedCronJobSpec{Schedule: "*/10 * * * *", ConcurrencyPolicy: kruise.AllowConcurrent, SuccessfulJobsHistoryLimit: ptr.To[int32](3), FailedJobsHistoryLimit: ptr.To[int32](1)}
	job.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "backup"}, Annotations: map[string]string{"a": "b"}}}
	job.Spec.Template.JobTemplate.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}
	if edit != nil {
		edit(job)
	}
	b := fakeclient.NewClientBuilder(apiserver.Scheme(t)).WithObjects(fakeclient.AddNamespaces(job)...).
		WithStatusSubresource(&kruise.AdvancedCronJob{}, &batchv1.Job{}, &kruise.BroadcastJob{}, &kruise.ImageListPullJob{})
	for _, o := range []client.Object{&batchv1.Job{}, &kruise.BroadcastJob{}, &kruise.ImageListPullJob{}} {
		b = b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
	}
	w.api = b.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetUID() == "" {
				o.SetUID(uuid.NewUUID())
			}
			return w.try(func() error {
				err := c.Create(ctx, o, opts...)
				if err == nil {
					w.created = append(w.created, o.GetName())
				}
				return err
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.try(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return w.try(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	}).Build()
	w.restart()
	return w
}

// try does a write, or fails it before or after, as refuse has it.
func (w *world) try(do func() error) error {
	if w.refuse == nil {
		return do()
	}
	w.writes++
	n := w.writes
	if err := w.refuse(n); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.refuse(-n)
}

// restart is a new process with nothing in memory.
func (w *world) restart() {
	w.r = New(reconcile.Deps{Client: w.api, Live: w.api, Events: w.events, Engine: w.engine, Now: func() time.Time { return w.now }})
}

// until lets time pass and reconciles twice; it says when the controller looks again.
func (w *world) until(clock string) time.Duration {
	w.Helper()
	w.now = at(w, "2026-03-01T"+clock+"Z")
	w.reconcile()
	return w.reconcile()
}

func (w *world) reconcile() time.Duration {
	w.Helper()
	got, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: w.key})
	if err != nil {
		w.Fatal(err)
	}
	return got.RequeueAfter
}

func (w *world) get() *kruise.AdvancedCronJob {
	w.Helper()
	job := &kruise.AdvancedCronJob{}
	if err := w.api.Get(w.Context(), w.key, job); err != nil {
		w.Fatal(err)
	}
	return job
}

func (w *world) edit(edit func(*kruise.AdvancedCronJob)) {
	w.Helper()
	job := w.get()
	edit(job)
	if err := w.api.Update(w.Context(), job); err != nil {
		w.Fatal(err)
	}
}

// runs are the times of the jobs that are there, such as "03:10 03:20".
func (w *world) runs(want string) {
	w.Helper()
	list := &batchv1.JobList{}
	if err := w.api.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, j := range list.Items {
		t := at(w, j.Annotations[kruise.ScheduledAtKey])
		if j.Name != fmt.Sprint("backup-", t.Unix()) || j.Labels["app"] != "backup" || j.Annotations["a"] != "b" || !OwnsObject(&j) {
			w.Errorf("got %+v", j.ObjectMeta)
		}
		out = append(out, t.Format("15:04"))
	}
	slices.Sort(out)
	if got := strings.Join(out, " "); got != want {
		w.Errorf("there are runs of %q, want %q", got, want)
	}
}

// end ends the jobs of times.
func (w *world) end(kind batchv1.JobConditionType, clocks ...string) {
	w.Helper()
	refuse := w.refuse
	w.refuse = nil
	defer func() { w.refuse = refuse }()
	for _, clock := range clocks {
		j := &batchv1.Job{}
		if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: "shop", Name: fmt.Sprint("backup-", at(w, "2026-03-01T"+clock+":00Z").Unix())}, j); err != nil {
			w.Fatal(err)
		}
		j.Status.StartTime = ptr.To(metav1.NewTime(at(w, "2026-03-01T"+clock+":00Z")))
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
		if err := w.api.Status().Update(w.Context(), j); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) told() string {
	var out []string
	for len(w.events.Events) > 0 {
		out = append(out, <-w.events.Events)
	}
	return strings.Join(out, "\n")
}

func TestRunsStartAsTheyAreDue(t *testing.T) {
	w := newWorld(t, nil)
	if left := w.until("03:04:00"); left != 6*time.Minute {
		t.Errorf("again in %s", left)
	}
	w.runs("")
	if s := w.get().Status; s.Type != kruise.JobTemplateKind || s.LastScheduleTime != nil || len(s.Active) != 0 {
		t.Errorf("got %+v", s)
	}
	if left := w.until("03:10:00"); left != 10*time.Minute {
		t.Errorf("again in %s", left)
	}
	w.runs("03:10")
	s := w.get().Status
	if !s.LastScheduleTime.Time.Equal(at(t, "2026-03-01T03:10:00Z")) || len(s.Active) != 1 || s.Active[0].Kind != "Job" || s.Active[0].APIVersion != "batch/v1" || s.Active[0].UID == "" {
		t.Errorf("got %+v", s)
	}
	w.until("03:10:01")
	w.restart()
	w.until("03:19:59")
	w.runs("03:10")
	if got := w.told(); got != "Normal SuccessfulCreate Created job backup-1772334600" {
		t.Errorf("told is %q", got)
	}
	w.end(batchv1.JobComplete, "03:10")
	w.until("03:20:00")
	w.runs("03:10 03:20")
	if got := w.told(); !strings.HasPrefix(got, "Normal SawCompletedJob Saw completed job: backup-1772334600, condition: Complete\n") || len(w.get().Status.Active) != 1 {
		t.Errorf("told is %q", got)
	}
}

func TestHistory(t *testing.T) {
	w := newWorld(t, func(j *kruise.AdvancedCronJob) { j.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](1) })
	for _, clock := range []string{"03:10", "03:20", "03:30", "03:40"} {
		w.until(clock + ":00")
	}
	w.end(batchv1.JobComplete, "03:10", "03:30")
	w.end(batchv1.JobFailed, "03:20", "03:40")
	w.until("03:41:00")
	w.runs("03:30 03:40")
	w.edit(func(j *kruise.AdvancedCronJob) {
		j.Spec.SuccessfulJobsHistoryLimit, j.Spec.FailedJobsHistoryLimit = ptr.To[int32](0), ptr.To[int32](0)
	})
	w.until("03:42:00")
	w.runs("")
	w.restart()
	w.until("03:43:00")
	w.runs("") // the last run is remembered without its job
	if !w.get().Status.LastScheduleTime.Time.Equal(at(t, "2026-03-01T03:40:00Z")) {
		t.Errorf("got %+v", w.get().Status)
	}
}

func TestConcurrency(t *testing.T) {
	for policy, want := range map[kruise.ConcurrencyPolicy]string{kruise.AllowConcurrent: "03:10 03:20", kruise.ForbidConcurrent: "03:10", kruise.ReplaceConcurrent: "03:20"} {
		w := newWorld(t, func(j *kruise.AdvancedCronJob) { j.Spec.ConcurrencyPolicy = policy })
		w.until("03:10:00")
		w.told()
		w.until("03:20:00")
		w.restart()
		w.until("03:20:10")
		w.runs(want)
		if policy != kruise.ForbidConcurrent {
			continue
		}
		if got := w.told(); got != "Normal JobAlreadyActive Not starting job because prior execution is running and concurrency policy is Forbid" {
			t.Errorf("told is %q", got)
		}
		w.end(batchv1.JobComplete, "03:10") // it may start late
		w.until("03:21:00")
		w.runs("03:10 03:20")
		if meta.FindStatusCondition(w.get().Status.Conditions, kruise.AdvancedCronJobRunHeld) != nil {
			t.Error("it is held still")
		}
	}
}

func TestPaused(t *testing.T) {
	w := newWorld(t, func(j *kruise.AdvancedCronJob) { j.Spec.Paused = ptr.To(true) })
	if left := w.until("03:15:00"); left != 0 {
		t.Errorf("again in %s", left)
	}
	w.runs("")
	w.edit(func(j *kruise.AdvancedCronJob) { j.Spec.Paused = ptr.To(false) })
	w.until("03:16:00")
	w.runs("03:10")
}

func TestMissedRuns(t *testing.T) {
	w := newWorld(t, func(j *kruise.AdvancedCronJob) { j.Spec.StartingDeadlineSeconds = ptr.To[int64](60) })
	w.until("03:12:00")
	w.restart()
	w.until("03:13:00")
	w.runs("")
	if got := w.told(); got != "Warning MissSchedule Missed scheduled time to start a job: Sun, 01 Mar 2026 03:10:00 +0000" {
		t.Errorf("told is %q", got)
	}
	w.until("03:20:59")
	w.runs("03:20")

	w = newWorld(t, nil)
	w.until("03:45:00")
	w.runs("03:40")
	if got := w.told(); !strings.HasSuffix(got, "\nWarning MissSchedule Missed scheduled times to start a job: 3 before 2026-03-01T03:40:00Z; only the last run was started") {
		t.Errorf("told is %q", got)
	}

	w = newWorld(t, func(j *kruise.AdvancedCronJob) { j.CreationTimestamp = metav1.NewTime(at(t, "2020-01-01T00:00:00Z")) })
	w.until("03:45:00")
	w.runs("03:40")
	if got := w.told(); !strings.Contains(got, "Warning TooManyMissedTimes too many missed start times (100 or more)") {
		t.Errorf("told is %q", got)
	}
}

func TestAHoldOfACalendar(t *testing.T) {
	closed := func(run string) string {
		return fmt.Sprintf(`hold contains {"rule": "calendar", "reason": "Closed", "message": "The shop is closed until 03:25.", "until": "2026-03-01T03:25:00Z", "run": %q} if input.now < time.parse_rfc3339_ns("2026-03-01T03:25:00Z")`, run)
	}
	t.Run("it waits, and runs afterwards", func(t *testing.T) {
		w := newWorld(t, nil, closed("Wait"))
		w.until("03:10:00")
		w.restart()
		w.until("03:11:00")
		if left := w.until("03:20:00"); left != 5*time.Minute {
			t.Errorf("again in %s", left)
		}
		w.runs("")
		c := meta.FindStatusCondition(w.get().Status.Conditions, kruise.AdvancedCronJobRunHeld)
		if c == nil || c.Reason != "Closed" || c.Message != "The shop is closed until 03:25. (rule calendar)" {
			t.Errorf("got %+v", c)
		}
		if got := w.told(); got != "Warning RunHeld Closed: The shop is closed until 03:25. (rule calendar)" {
			t.Errorf("told is %q", got)
		}
		w.until("03:25:00")
		w.runs("03:20")
		if meta.FindStatusCondition(w.get().Status.Conditions, kruise.AdvancedCronJobRunHeld) != nil {
			t.Error("it is held still")
		}
	})
	t.Run("it is skipped", func(t *testing.T) {
		w := newWorld(t, nil, closed("Skip"))
		w.until("03:10:00")
		w.restart()
		w.until("03:11:00")
		if got := w.told(); got != "Warning RunLeftOut The run of 2026-03-01T03:10:00Z is left out: The shop is closed until 03:25. (rule calendar)" {
			t.Errorf("told is %q", got)
		}
		w.until("03:20:00")
		w.until("03:25:00")
		w.restart()
		w.until("03:26:00")
		w.runs("")
		w.until("03:30:00")
		w.runs("03:30")
	})
	t.Run("a hold of rollouts is not about runs", func(t *testing.T) {
		w := newWorld(t, nil, `hold contains {"reason": "Freeze", "message": "No rollouts."}`)
		w.until("03:10:00")
		w.runs("03:10")
	})
}

func TestAScheduleThatCannotBeRead(t *testing.T) {
	w := newWorld(t, func(j *kruise.AdvancedCronJob) { j.Spec.Schedule = "often" })
	w.until("03:10:00")
	w.until("03:11:00")
	if c := meta.FindStatusCondition(w.get().Status.Conditions, kruise.AdvancedCronJobScheduleValid); c == nil || c.Status != metav1.ConditionFalse || c.Reason != "UnparseableSchedule" {
		t.Errorf("got %+v", c)
	}
	if got := w.told(); strings.Count(got, "UnparseableSchedule") != 1 {
		t.Errorf("told is %q", got)
	}
	w.edit(func(j *kruise.AdvancedCronJob) { j.Spec.Schedule = "*/10 * * * *" })
	w.until("03:12:00")
	w.runs("03:10")
}

// A write fails before or after it was done, each in turn, and the process begins anew: no
// run is started twice, and none is lost.
func TestARunStartsOnceWhateverFails(t *testing.T) {
	for fails := 1; fails <= 12; fails++ {
		for _, side := range []int{1, -1} {
			w := newWorld(t, func(j *kruise.AdvancedCronJob) { j.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](0) })
			w.refuse = func(n int) error {
				if n == side*fails {
					return errors.New("the process ends")
				}
				return nil
			}
			for minute := 5; minute <= 45; minute++ {
				w.now = at(t, fmt.Sprintf("2026-03-01T03:%02d:00Z", minute))
				for range 3 {
					if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err != nil {
						w.restart()
					}
				}
				if minute%10 == 3 {
					w.end(batchv1.JobComplete, fmt.Sprintf("03:%02d", minute-3))
				}
			}
			if got, want := strings.Join(w.created, " "), "backup-1772334600 backup-1772335200 backup-1772335800 backup-1772336400"; got != want {
				t.Errorf("with a failure at write %d (%d): created are %s, want %s", fails, side, got, want)
			}
		}
	}
}

func TestAJobOfAnother(t *testing.T) {
	w := newWorld(t, nil)
	other := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup-1772334600"}}
	if err := w.api.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	w.now = at(t, "2026-03-01T03:10:00Z")
	if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err == nil {
		t.Error("it took the job for its own")
	}
	if got := w.told(); !strings.Contains(got, "Delete or rename it.") {
		t.Errorf("told is %q", got)
	}
}

func TestOtherTemplates(t *testing.T) {
	w := newWorld(t, func(j *kruise.AdvancedCronJob) {
		j.Spec.Template = kruise.CronJobTemplate{BroadcastJobTemplate: &kruise.BroadcastJobTemplateSpec{}}
	})
	w.until("03:10:00")
	b := &kruise.BroadcastJob{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "backup-1772334600"}, b); err != nil || !OwnsObject(b) {
		t.Errorf("got %v, %+v", err, b)
	}
	if s := w.get().Status; s.Type != kruise.BroadcastJobTemplateKind || len(s.Active) != 1 || s.Active[0].Kind != "BroadcastJob" {
		t.Errorf("got %+v", s)
	}
	w = newWorld(t, func(j *kruise.AdvancedCronJob) {
		j.Spec.ConcurrencyPolicy = kruise.ReplaceConcurrent
		j.Spec.Template = kruise.CronJobTemplate{ImageListPullJobTemplate: &kruise.ImageListPullJobTemplateSpec{Spec: kruise.ImageListPullJobSpec{Images: []string{"a", "b"}}}}
	})
	w.until("03:10:00")
	p := &kruise.ImageListPullJob{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "backup-1772334600"}, p); err != nil || len(p.Spec.Images) != 2 {
		t.Errorf("got %v, %+v", err, p)
	}
	for want, status := range map[string]kruise.ImageListPullJobStatus{
		active: {Desired: 2}, succeeded: {Desired: 2, Succeeded: 2, CompletionTime: &metav1.Time{}}, failed: {Desired: 2, Succeeded: 1, CompletionTime: &metav1.Time{}},
	} {
		p.Status = status
		if got := newChild(p).outcome; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
