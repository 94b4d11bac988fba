// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is a namespace of a real API server with pods a, b and c, the oldest first, and the job
// look.
type world struct {
	*testing.T
	api    client.Client
	engine *engine.Engine
	events *record.FakeRecorder
	r      *Reconciler
	now    time.Time
	ns     string
}

func (w *world) do(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// restart is a new process with nothing in memory.
func (w *world) restart() {
	w.r = New(reconcile.Deps{Client: w.api, Live: w.api, Events: w.events, Engine: w.engine, Now: func() time.Time { return w.now }})
}

func (w *world) pod(name string, labels map[string]string) {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: map[string]string{"app": "web"}}}
	for key, value := range labels {
		pod.Labels[key] = value
	}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "nginx"}}
	w.do(w.api.Create(w.Context(), pod))
}

func (w *world) job(edit func(*kruise.EphemeralJob)) {
	w.Helper()
	job := &kruise.EphemeralJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "look", Finalizers: []string{kruise.EphemeralContainersFinalizer}}}
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	job.Spec.Template.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "dbg", Image: "busybox", ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageReadFile, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
	}}}
	if edit != nil {
		edit(job)
	}
	w.do(w.api.Create(w.Context(), job))
}

func (w *world) get() *kruise.EphemeralJob {
	w.Helper()
	job := &kruise.EphemeralJob{}
	w.do(w.api.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: "look"}, job))
	return job
}

func (w *world) edit(edit func(*kruise.EphemeralJob)) {
	w.Helper()
	job := w.get()
	edit(job)
	w.do(w.api.Update(w.Context(), job))
}

// try reconciles some times, and says when to look again.
func (w *world) try() (after time.Duration, err error) {
	w.Helper()
	for range 3 {
		got, failed := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: w.ns, Name: "look"}})
		if failed != nil {
			err = failed
		}
		after = got.RequeueAfter
	}
	return after, err
}

func (w *world) round() time.Duration {
	w.Helper()
	after, err := w.try()
	w.do(err)
	return after
}

// having are the pods that have the container, in order, as "a b".
func (w *world) having(want string) {
	w.Helper()
	list := &corev1.PodList{}
	w.do(w.api.List(w.Context(), list, client.InNamespace(w.ns)))
	var got []string
	for _, pod := range list.Items {
		for _, c := range pod.Spec.EphemeralContainers {
			if c.Name == "dbg" && owningJobUID(&c) == string(w.get().UID) {
				got = append(got, pod.Name)
			}
		}
	}
	slices.Sort(got)
	if strings.Join(got, " ") != want {
		w.Errorf("pods %v have the container, want %q", got, want)
	}
}

// becomes writes what a kubelet would of the container.
func (w *world) becomes(state corev1.ContainerState, pods ...string) {
	w.Helper()
	for _, name := range pods {
		pod := &corev1.Pod{}
		w.do(w.api.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, pod))
		pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "dbg", State: state}}
		w.do(w.api.Status().Update(w.Context(), pod))
	}
}

func ended(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()}}
}

func runs() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
}

func waits(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

// status checks phase match/running/succeeded/waiting/failed, and the conditions.
func (w *world) status(want string, conditions ...v1beta1.JobConditionType) {
	w.Helper()
	s := w.get().Status
	if got := fmt.Sprintf("%s %d/%d/%d/%d/%d", s.Phase, s.Match, s.Running, s.Succeeded, s.Waiting, s.Failed); got != want {
		w.Errorf("the status is %s, want %s", got, want)
	}
	var types []v1beta1.JobConditionType
	kstatus.RemoveConditions(&s)
	for _, c := range s.Conditions {
		types = append(types, c.Type)
	}
	if want := append([]v1beta1.JobConditionType{kruise.EphemeralJobConditionInitialized}, conditions...); !slices.Equal(types, want) {
		w.Errorf("the conditions are %v, want %v", types, want)
	}
}

func (w *world) told() string {
	var out []string
	for len(w.events.Events) > 0 {
		out = append(out, <-w.events.Events)
	}
	return strings.Join(out, "\n")
}

// cases are run on one API server, each with a namespace of its own.
type cases struct {
	*testing.T
	config *rest.Config
	api    client.Client
	prefix string
	n      int
}

func serve(t *testing.T, prefix string) *cases {
	t.Helper()
	env, api := apiserver.Serve(t)
	return &cases{T: t, config: env.Config, api: api, prefix: prefix}
}

// run runs a case with rules of users.
func (c *cases) run(name string, f func(w *world), modules ...string) {
	c.Run(name, func(t *testing.T) {
		c.n++
		e := rules.Engine(t, "")
		w := &world{T: t, api: c.api, engine: e, events: record.NewFakeRecorder(100), now: time.Now().Truncate(time.Second), ns: fmt.Sprintf("%s-%d", c.prefix, c.n)}
		for i, rule := range modules {
			b, err := bundle.FromFiles("rules", map[string]string{"x.rego": fmt.Sprintf("package extend.placement.x%d\n\n%s", i, rule)})
			w.do(err)
			w.do(e.ActivateBundles(t.Context(), bundle.Set{b}))
		}
		w.restart()
		w.do(c.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}))
		w.do(client.IgnoreAlreadyExists(c.api.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "default"}})))
		for _, name := range []string{"a", "b", "c"} {
			w.pod(name, map[string]string{"name": name})
		}
		f(w)
	})
}

func TestTheController(t *testing.T) {
	c := serve(t, "ejob")
	run, api := c.run, c.api

	run("one pod after the other, to the end", func(w *world) {
		w.job(nil)
		w.round()
		w.having("a")
		pod := &corev1.Pod{}
		w.do(api.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: "a"}, pod))
		if env := pod.Spec.EphemeralContainers[0].Env; len(env) != 2 || env[0].Name != "A" || env[1] != (corev1.EnvVar{Name: "KRUISE_EJOB_ID", Value: string(w.get().UID)}) {
			w.Errorf("the env is %v", env)
		}
		w.status("Unknown 3/0/0/0/0")
		w.becomes(waits("ContainerCreating"), "a")
		w.round()
		w.status("Unknown 3/0/0/1/0")
		w.becomes(runs(), "a")
		w.restart()
		w.round()
		w.having("a")
		w.status("Running 3/1/0/0/0")
		w.becomes(ended(0), "a")
		w.round()
		w.having("a b")
		w.becomes(ended(0), "b")
		w.round()
		w.becomes(ended(0), "c")
		if left := w.round(); left != 30*time.Minute {
			w.Errorf("it is looked at again in %s", left)
		}
		w.having("a b c")
		w.status("Succeeded 3/0/3/0/0", kruise.EphemeralJobConditionSucceeded)
		if c := w.get().Status.Conditions[1]; c.Reason != "JobSucceeded" || c.Message != "job success to run all tasks" {
			w.Errorf("got %+v", c)
		}
		w.now = w.now.Add(30 * time.Minute)
		w.round() // it is deleted, and the finalizer of OpenKruise goes
		if err := api.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: "look"}, &kruise.EphemeralJob{}); !apierrors.IsNotFound(err) {
			w.Errorf("got %v", err)
		}
	})
	run("parallelism is used to the end", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) { j.Spec.Parallelism = ptr.To[int32](2) })
		w.round()
		w.having("a b")
		w.becomes(runs(), "a", "b")
		w.becomes(ended(0), "b")
		w.round()
		w.having("a b c") // OpenKruise would wait for a
	})
	run("replicas are the oldest pods", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) {
			j.Spec.Parallelism, j.Spec.Replicas = ptr.To[int32](9), ptr.To[int32](2)
		})
		w.round()
		w.having("a b")
		w.becomes(ended(0), "a", "b")
		w.round()
		w.having("a b")
		w.status("Succeeded 2/0/2/0/0", kruise.EphemeralJobConditionSucceeded)
	})
	run("a pod that has failed fails the job at its end", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) { j.Spec.Parallelism = ptr.To[int32](3) })
		w.round()
		w.becomes(ended(1), "a")
		w.becomes(runs(), "b")
		w.becomes(ended(0), "c")
		w.round()
		w.status("Running 3/1/1/0/1", kruise.EphemeralJobConditionFailed)
		w.becomes(waits("RunContainerError"), "b")
		w.round()
		w.status("Failed 3/0/1/0/2", kruise.EphemeralJobConditionFailed)
		if w.get().Status.CompletionTime == nil {
			w.Error("it has not ended")
		}
	})
	run("no pod matches", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) {
			j.Spec.Selector.MatchLabels = map[string]string{"app": "db"}
			j.Spec.ActiveDeadlineSeconds = ptr.To[int64](10)
		})
		if left := w.round(); left != 10*time.Second {
			w.Errorf("it is looked at again in %s", left)
		}
		w.status("Waiting 0/0/0/0/0", kruise.EphemeralJobConditionMatchedEmpty)
		w.pod("db", map[string]string{"app": "db"})
		w.round()
		w.having("db")
		w.status("Unknown 1/0/0/0/0")
		w.now = w.now.Add(10 * time.Second)
		w.round()
		w.status("Failed 1/0/0/0/0", kruise.EphemeralJobConditionFailed)
		if c := w.get().Status.Conditions[1]; c.Reason != "DeadlineExceeded" {
			w.Errorf("got %+v", c)
		}
	})
	run("a job that is paused adds nothing", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) { j.Spec.Paused = true })
		w.round()
		w.having("")
		w.status("Paused 3/0/0/0/0")
		w.edit(func(j *kruise.EphemeralJob) { j.Spec.Paused = false })
		w.round()
		w.having("a")
	})
	run("a hold", func(w *world) {
		w.job(nil)
		if left := w.round(); left <= 0 {
			w.Error("it is not looked at again")
		}
		w.having("")
		w.status("Unknown 3/0/0/0/0", kruise.EphemeralJobHeld)
		if got := w.told(); got != "Warning EphemeralJobHeld Night: It is night. (rule extend.placement.x0)" {
			w.Errorf("told is %q", got)
		}
		w.do(w.engine.ActivateBundles(w.Context(), nil))
		w.round()
		w.having("a")
		w.status("Unknown 3/0/0/0/0")
		if got := w.told(); got != "Normal NotHeld No policy keeps containers from being added any more." {
			w.Errorf("told is %q", got)
		}
	}, `hold contains {"reason": "Night", "message": "It is night.", "until": "2096-11-14T23:00:00Z"}`)
	run("policies that do not decide", func(w *world) {
		w.job(nil)
		w.round()
		w.having("")
		if c := jobcondition.Find(w.get().Status.Conditions, kruise.EphemeralJobHeld); c == nil || c.Reason != "InvalidHold" {
			w.Errorf("got %+v", c)
		}
	}, `hold contains {"reason": 1}`)
	run("a denied pod is none of the job", func(w *world) {
		w.job(func(j *kruise.EphemeralJob) {
			j.Spec.Replicas, j.Spec.Parallelism = ptr.To[int32](2), ptr.To[int32](3)
		})
		w.round()
		w.having("b c")
		w.becomes(ended(0), "b", "c")
		w.round()
		w.status("Succeeded 2/0/2/0/0", kruise.EphemeralJobDenied, kruise.EphemeralJobConditionSucceeded)
		if c := w.get().Status.Conditions[1]; c.Reason != "Gold" || c.Message != "Pod a is gold. (rule extend.placement.x0)" {
			w.Errorf("got %+v", c)
		}
	}, `deny contains {"reason": "Gold", "message": sprintf("Pod %s is gold.", [p.name]), "target": p.name} if { some p in input.pods; p.name == "a" }`)
}
