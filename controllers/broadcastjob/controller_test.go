// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
)

const (
	running   = kruise.BroadcastJobPhaseRunning
	paused    = kruise.BroadcastJobPhasePaused
	failed    = kruise.BroadcastJobPhaseFailed
	completed = kruise.BroadcastJobPhaseCompleted
)

func TestAPodOnEachNodeAndTheEnd(t *testing.T) {
	w := newWorld(t, func(j *kruise.BroadcastJob) { j.Spec.Template.Labels = map[string]string{"app": "upgrade"} })
	w.round()
	w.where("a b c")
	w.status(running, 3, 3, 0, 0)
	if got := strings.Count(w.told(), "Normal SuccessfulCreate Created pod: upgrade-"); got != 3 {
		t.Errorf("%d events", got)
	}
	pod := w.pods()[0]
	ref := pod.OwnerReferences[0]
	if pod.Labels["broadcastjob-name"] != "upgrade" || pod.Labels["broadcastjob-controller-uid"] != "j1" || pod.Labels["app"] != "upgrade" ||
		ref.Kind != "BroadcastJob" || !*ref.Controller || pod.GenerateName != "upgrade-" || len(pod.Name) != len("upgrade-")+idLength || pod.Spec.NodeName != "" {
		t.Errorf("got %+v", pod.ObjectMeta)
	}
	w.phase(corev1.PodSucceeded, "a", "b")
	w.round()
	w.status(running, 3, 1, 2, 0)
	w.now = w.now.Add(time.Minute)
	w.phase(corev1.PodSucceeded, "c")
	w.round()
	w.status(completed, 3, 0, 3, 0)
	s := w.get().Status
	if c := s.Conditions[0]; len(s.Conditions) != 2 || c.Type != "Complete" || c.Reason != "Complete" || c.Message != "Job completed, 3 pods succeeded, 0 pods failed" || !s.CompletionTime.Time.Equal(w.now) || s.StartTime.Time.Equal(w.now) {
		t.Errorf("got %+v", s)
	}
	if got := w.told(); got != "Normal JobComplete Job ops/upgrade is completed, 3 pods succeeded, 0 pods failed" {
		t.Errorf("told is %q", got)
	}
	w.node("d", nil)
	w.round()
	w.where("a b c") // it has ended
}

func TestWhichNodes(t *testing.T) {
	taint := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}} }
	w := newWorld(t, nil)
	w.node("b", taint)
	w.node("d", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	w.round()
	w.where("a c")
	w.status(running, 2, 2, 0, 0)
	w.phase(corev1.PodSucceeded, "a")
	w.node("a", taint)
	w.node("c", taint)
	w.round()
	w.where("a") // the pod of c goes, that of a has ended and stays
	w.status(completed, 1, 0, 1, 0)
}

func TestAPodThatWaitsForANodeThatIsGone(t *testing.T) {
	w := newWorld(t, nil)
	w.round()
	for _, name := range []string{"b", "c"} {
		n := &corev1.Node{}
		n.Name = name
		if err := w.api.Delete(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range w.pods() { // that of c ran there
		if p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0] == "c" {
			p.Spec.NodeName = "c"
			if err := w.api.Update(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.round()
	w.where("a c")
}

func TestParallelism(t *testing.T) {
	for _, parallelism := range []intstr.IntOrString{intstr.FromInt32(2), intstr.FromString("34%")} {
		w := newWorld(t, func(j *kruise.BroadcastJob) { j.Spec.Parallelism = &parallelism })
		w.round()
		w.where("a b")
		w.round()
		w.where("a b")
		w.phase(corev1.PodSucceeded, "a")
		w.round()
		w.where("a b c")
		w.told()
		w.edit(func(j *kruise.BroadcastJob) { j.Spec.Parallelism = ptr.To(intstr.FromInt32(1)) })
		w.round()
		if got := w.told(); got != "Warning TooManyActivePods Number of active pods (2) exceeds parallelism limit (1)" {
			t.Errorf("told is %q", got)
		}
	}
}

func TestWithoutTheScheduler(t *testing.T) {
	w := newWorld(t, nil)
	w.restart(WithAffinity(false))
	w.round()
	for _, p := range w.pods() {
		if p.Spec.NodeName == "" || p.Spec.Affinity != nil {
			t.Errorf("got %+v", p.Spec)
		}
	}
	w.where("a b c")
}

func TestFailFast(t *testing.T) {
	w := newWorld(t, nil)
	w.round()
	w.phase(corev1.PodSucceeded, "a")
	w.phase(corev1.PodFailed, "b")
	w.told()
	w.round()
	w.where("a b")
	w.status(failed, 3, 0, 1, 2)
	s := w.get().Status
	if c := s.Conditions[0]; c.Type != "Failed" || c.Reason != "Failed" || c.Message != "failed pod is found" || s.CompletionTime == nil {
		t.Errorf("got %+v", s)
	}
	if got := w.told(); !strings.HasPrefix(got, "Normal SuccessfulDelete Deleted pod: upgrade-") || !strings.HasSuffix(got, "\nWarning failed pod is found failed pod is found: 1 pods succeeded, 2 pods failed") {
		t.Errorf("told is %q", got)
	}
}

func TestContinue(t *testing.T) {
	w := newWorld(t, func(j *kruise.BroadcastJob) { j.Spec.FailurePolicy.Type = kruise.FailurePolicyTypeContinue })
	w.round()
	w.phase(corev1.PodFailed, "b")
	w.round()
	w.status(running, 3, 2, 0, 1)
	w.phase(corev1.PodSucceeded, "a", "c")
	w.round()
	w.status(completed, 3, 0, 2, 1)
}

func TestAPodThatRestartsTooOftenHasFailed(t *testing.T) {
	w := newWorld(t, func(j *kruise.BroadcastJob) {
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		j.Spec.FailurePolicy = kruise.FailurePolicy{Type: kruise.FailurePolicyTypeContinue, RestartLimit: 2}
	})
	w.round()
	restarted := func(n int32) {
		for _, p := range w.pods() {
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "i", RestartCount: 1}}, []corev1.ContainerStatus{{Name: "main", RestartCount: n}}
			if err := w.api.Status().Update(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
		}
		w.round()
	}
	restarted(1)
	w.status(running, 3, 3, 0, 0)
	w.phase(corev1.PodSucceeded, "a", "b")
	restarted(2)
	w.status(completed, 3, 0, 2, 1)
	w.where("a b") // it would restart for ever
}

func TestPause(t *testing.T) {
	t.Run("by the user", func(t *testing.T) {
		w := newWorld(t, func(j *kruise.BroadcastJob) { j.Spec.Paused = true })
		w.round()
		w.where("")
		w.status(paused, 3, 0, 0, 0)
		w.edit(func(j *kruise.BroadcastJob) { j.Spec.Paused = false })
		w.round()
		w.where("a b c")
		if got := w.told(); strings.Count(got, "Normal Continue continue to process job") != 1 {
			t.Errorf("told is %q", got)
		}
	})
	start := func(t *testing.T) *world {
		w := newWorld(t, func(j *kruise.BroadcastJob) {
			j.Spec.FailurePolicy.Type, j.Spec.Parallelism = kruise.FailurePolicyTypePause, ptr.To(intstr.FromInt32(1))
		})
		w.round()
		w.phase(corev1.PodFailed, "a")
		w.told()
		w.round()
		w.restart()
		w.round()
		w.where("a")
		w.status(paused, 3, 0, 0, 1)
		if got := w.told(); got != "Warning Paused job is paused, due to failed pod" {
			t.Errorf("told is %q", got)
		}
		if c := jobcondition.Find(w.get().Status.Conditions, kruise.BroadcastJobPausedByFailure); c == nil || !strings.Contains(c.Message, w.pods()[0].Name) {
			t.Errorf("got %+v", c)
		}
		if w.get().Spec.Paused {
			t.Error("the spec was written")
		}
		return w
	}
	goesOn := func(w *world, want string) {
		w.Helper()
		w.round()
		w.where(want)
		if got := w.told(); strings.Count(got, "Normal Continue continue to process job") != 1 || w.get().Status.Phase != running || jobcondition.Find(w.get().Status.Conditions, kruise.BroadcastJobPausedByFailure) != nil {
			w.Errorf("told is %q, the status %+v", got, w.get().Status)
		}
	}
	t.Run("by a failure, gone on from by deleting the pod", func(t *testing.T) {
		w := start(t)
		if err := w.api.Delete(t.Context(), &w.pods()[0]); err != nil {
			t.Fatal(err)
		}
		goesOn(w, "a")
	})
	t.Run("by a failure, gone on from by the policy", func(t *testing.T) {
		w := start(t)
		w.edit(func(j *kruise.BroadcastJob) { j.Spec.FailurePolicy.Type = kruise.FailurePolicyTypeContinue })
		goesOn(w, "a b")
	})
	t.Run("by a failure, gone on from by spec.paused", func(t *testing.T) {
		w := start(t)
		w.edit(func(j *kruise.BroadcastJob) { j.Spec.Paused = true })
		w.round()
		w.restart()
		w.edit(func(j *kruise.BroadcastJob) { j.Spec.Paused = false })
		goesOn(w, "a b")
		w.phase(corev1.PodFailed, "b") // another one
		w.round()
		w.where("a b")
		w.status(paused, 3, 0, 0, 2)
		if got := w.told(); got != "Warning Paused job is paused, due to failed pod" {
			t.Errorf("told is %q", got)
		}
	})
}

func TestDeadlineAndTTL(t *testing.T) {
	w := newWorld(t, func(j *kruise.BroadcastJob) {
		j.Spec.CompletionPolicy.ActiveDeadlineSeconds, j.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int64](10), ptr.To[int32](30)
	})
	if left := w.round(); left != 10*time.Second {
		t.Errorf("it is looked at again in %s", left)
	}
	w.phase(corev1.PodSucceeded, "a")
	w.told()
	w.now = w.now.Add(10 * time.Second)
	if left := w.round(); left != 30*time.Second {
		t.Errorf("it is looked at again in %s", left)
	}
	w.where("a")
	w.status(failed, 3, 0, 1, 2)
	if got := w.told(); !strings.HasSuffix(got, "Warning DeadlineExceeded Job ops/upgrade was active longer than specified deadline: 1 pods succeeded, 2 pods failed") {
		t.Errorf("told is %q", got)
	}
	w.now = w.now.Add(30 * time.Second)
	w.round()
	if err := w.api.Get(t.Context(), w.key, &kruise.BroadcastJob{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

func TestNever(t *testing.T) {
	w := newWorld(t, func(j *kruise.BroadcastJob) { j.Spec.CompletionPolicy.Type = kruise.NeverCompletionPolicyType })
	w.round()
	w.phase(corev1.PodSucceeded, "a", "b", "c")
	w.round()
	w.status(running, 3, 0, 3, 0)
	w.node("d", nil)
	w.round()
	w.where("a b c d")
	w.phase(corev1.PodFailed, "d")
	w.node("e", nil)
	w.round()
	w.status(failed, 5, 0, 3, 1)
	w.round()
	w.where("a b c d") // it failed
	if w.get().Status.CompletionTime != nil {
		t.Error("it has ended")
	}
}

func TestAHold(t *testing.T) {
	w := newWorld(t, nil, `hold contains {"reason": "Night", "message": "It is night.", "until": "2023-11-14T23:00:00Z"} if input.now < 1700002800000000000`)
	if left := w.round(); left != 2800*time.Second {
		t.Errorf("it is looked at again in %s", left)
	}
	w.restart()
	w.round()
	w.where("")
	w.status(running, 3, 0, 0, 0)
	c := jobcondition.Find(w.get().Status.Conditions, kruise.BroadcastJobHeld)
	if c == nil || c.Reason != "Night" || c.Message != "It is night. (rule extend.placement.x0)" {
		t.Errorf("got %+v", c)
	}
	if got := w.told(); got != "Warning BroadcastHeld Night: It is night. (rule extend.placement.x0)" {
		t.Errorf("told is %q", got)
	}
	w.now = w.now.Add(2800 * time.Second)
	w.round()
	w.where("a b c")
	if got := w.told(); strings.Count(got, "Normal NotHeld") != 1 || jobcondition.Find(w.get().Status.Conditions, kruise.BroadcastJobHeld) != nil {
		t.Errorf("told is %q", got)
	}
}

func TestAHoldOfANodeAndARank(t *testing.T) {
	w := newWorld(t, func(j *kruise.BroadcastJob) { j.Spec.Parallelism = ptr.To(intstr.FromInt32(1)) },
		`hold contains {"reason": "NotReady", "message": sprintf("%s is not ready.", [n.name]), "target": n.name} if { some n in input.nodes; n.conditions.Ready != "True" }`,
		`rank["c"] := -1`)
	w.node("a", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })
	status := &corev1.Node{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: "a"}, status); err != nil {
		t.Fatal(err)
	}
	status.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	if err := w.api.Status().Update(t.Context(), status); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.where("c")
	w.phase(corev1.PodSucceeded, "c")
	w.round()
	w.where("b c")
	w.phase(corev1.PodSucceeded, "b")
	w.round()
	w.where("b c")
	w.status(running, 3, 0, 2, 0)
}

func TestPoliciesThatDoNotDecide(t *testing.T) {
	w := newWorld(t, nil, `hold contains {"reason": 1}`)
	w.round()
	w.where("")
	if c := jobcondition.Find(w.get().Status.Conditions, kruise.BroadcastJobHeld); c == nil || c.Reason != "InvalidHold" {
		t.Errorf("got %+v", c)
	}
}

func TestADeniedNodeIsNotOfTheJob(t *testing.T) {
	w := newWorld(t, nil, `deny contains {"reason": "Kept", "message": "Node b is not for jobs.", "target": "b"}`)
	w.round()
	w.where("a c")
	w.status(running, 2, 2, 0, 0)
	w.phase(corev1.PodSucceeded, "a", "c")
	w.round()
	w.status(completed, 2, 0, 2, 0)
}

// bind puts the pods of nodes on them, as the scheduler does.
func (w *world) bind(nodes ...string) {
	w.Helper()
	for _, p := range w.pods() {
		if node := nodefit.NodeOf(&p); slices.Contains(nodes, node) {
			p.Spec.NodeName = node
			if err := w.api.Update(w.Context(), &p); err != nil {
				w.Fatal(err)
			}
		}
	}
}

func TestARunningPodStaysOnANodeThatDoesNotFitAnyMore(t *testing.T) {
	e := newEngine(t)
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		goes   bool
	}{
		"cordoned":       {func(n *corev1.Node) { n.Spec.Unschedulable = true }, false},
		"not ready":      {taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), false},
		"under pressure": {taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule), false},
		"allocates less": {func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1") }, false},
		"not asked for":  {func(n *corev1.Node) { n.Labels["tier"] = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, e, func(j *kruise.BroadcastJob) {
				j.Spec.Template.Spec.NodeSelector = map[string]string{"tier": "front"}
				j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			})
			for _, node := range []string{"a", "b", "c"} {
				w.node(node, func(n *corev1.Node) { n.Labels["tier"] = "front" })
			}
			w.round()
			w.bind("a", "b", "c")
			w.phase(corev1.PodRunning, "a", "b", "c")
			w.node("b", tc.change)
			w.phase(corev1.PodSucceeded, "a", "c")
			w.round()
			if tc.goes {
				w.where("a c")
				w.status(completed, 2, 0, 2, 0)
				return
			}
			w.where("a b c")
			w.status(running, 3, 1, 2, 0)
			w.phase(corev1.PodSucceeded, "b")
			w.round()
			w.status(completed, 3, 0, 3, 0)
		})
	}
}

// A pod that is deleted ends with an error, which is that of its deletion. One that failed before has failed.
func TestADrainedPodHasNotFailed(t *testing.T) {
	e := newEngine(t)
	for name, tc := range map[string]struct {
		ended time.Duration // since the deletion was asked for
		want  kruise.BroadcastJobPhase
	}{
		"ended by its deletion": {time.Second, running},
		"ended before":          {-time.Second, failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, e, func(j *kruise.BroadcastJob) { j.Spec.Template.Finalizers = []string{"a/b"} })
			w.round()
			w.bind("a", "b", "c")
			w.node("b", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			for _, p := range w.pods() {
				if p.Spec.NodeName != "b" {
					continue
				}
				if err := w.api.Delete(t.Context(), &p); err != nil {
					t.Fatal(err)
				}
				if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(&p), &p); err != nil {
					t.Fatal(err)
				}
				p.Status.Phase = corev1.PodFailed
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, FinishedAt: metav1.NewTime(p.DeletionTimestamp.Add(tc.ended))},
				}}}
				if err := w.api.Status().Update(t.Context(), &p); err != nil {
					t.Fatal(err)
				}
			}
			w.round()
			if got := w.get().Status.Phase; got != tc.want {
				t.Errorf("the job is %s, want %s", got, tc.want)
			}
		})
	}
}

// The end of a job is written before its pods are deleted: where that fails, nothing runs again, and
// where the process ends behind it, the next one deletes the pods.
func TestTheEndIsWrittenBeforePodsAreDeleted(t *testing.T) {
	e := newEngine(t)
	for name, tc := range map[string]struct {
		verb   string
		policy kruise.FailurePolicyType
		want   kruise.BroadcastJobPhase
	}{
		"the end of a failed job is refused":      {"status", kruise.FailurePolicyTypeFailFast, failed},
		"the pods of a failed job stay":           {"delete", kruise.FailurePolicyTypeFailFast, failed},
		"the end of a complete job is refused":    {"status", kruise.FailurePolicyTypeContinue, completed},
		"a pod of a complete job that runs stays": {"delete", kruise.FailurePolicyTypeContinue, completed},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, e, func(j *kruise.BroadcastJob) {
				j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
				j.Spec.FailurePolicy = kruise.FailurePolicy{Type: tc.policy, RestartLimit: 2}
			})
			w.round()
			for _, p := range w.pods() { // that of b is beyond its limit
				switch node := nodefit.NodeOf(&p); {
				case node == "b":
					p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 3}}
				case tc.want == completed || node == "a":
					p.Status.Phase = corev1.PodSucceeded
				}
				if err := w.api.Status().Update(t.Context(), &p); err != nil {
					t.Fatal(err)
				}
			}
			w.refuse = func(_ int, verb string, _ client.Object) error {
				switch verb {
				case tc.verb:
					return errors.New("the process ends")
				case "create":
					t.Error("a pod runs again")
				}
				return nil
			}
			if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err == nil {
				t.Fatal("the write was not refused")
			}
			w.where("a b c")
			w.refuse = func(_ int, verb string, _ client.Object) error {
				if verb == "create" {
					t.Error("a pod runs again")
				}
				return nil
			}
			w.restart()
			w.round()
			if tc.want == failed {
				w.where("a")
			} else {
				w.where("a c")
			}
			if got := w.get().Status.Phase; got != tc.want {
				t.Errorf("the job is %s, want %s", got, tc.want)
			}
		})
	}
}
