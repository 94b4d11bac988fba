// SPDX-License-Identifier: Apache-2.0

package containermeta

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// world is a node with one pod, web, in a namespace of its own, and a kubelet for it.
type world struct {
	*testing.T
	api     client.Client
	runtime *critest.Runtime
	agent   *Agent
	events  *record.FakeRecorder
	ns      string
	// now is what the clock of the node says, a minute ahead of all others.
	now time.Time
}

func (w *world) pod() *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{}
	if err := w.api.Get(w.Context(), types.NamespacedName{Namespace: w.ns, Name: "web"}, pod); err != nil {
		w.Fatal(err)
	}
	return pod
}

// create makes the pod; its containers run.
func (w *world) create(pod *corev1.Pod) {
	w.Helper()
	pod.Namespace, pod.UID, pod.Status = w.ns, "", corev1.PodStatus{}
	if err := w.api.Create(w.Context(), pod); err != nil {
		w.Fatal(err)
	}
	w.kubelet()
}

// kubelet runs each container that has no run, by the labels and annotations that the pod
// has now, and reports the runs.
func (w *world) kubelet() {
	w.Helper()
	pod := w.pod()
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		runs, err := w.connect().PodContainers(w.Context(), string(pod.UID))
		if err != nil {
			w.Fatal(err)
		}
		if !runs[c.Name].Running {
			w.runtime.RunAs(string(pod.UID), c.Name, runtimemeta.PlainHashes(c)[0], "COLOR="+pod.Annotations[c.Name], "PATH=/bin")
		}
	}
	w.tell()
}

// tell writes the status as the kubelet does.
func (w *world) tell() {
	w.Helper()
	pod := w.pod()
	runs, err := w.connect().PodContainers(w.Context(), string(pod.UID))
	if err != nil {
		w.Fatal(err)
	}
	pod.Status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		run := runs[pod.Spec.Containers[i].Name]
		st := corev1.ContainerStatus{Name: run.Name, ContainerID: run.ID, RestartCount: int32(run.Restarts), Image: "web:1", ImageID: "i1"}
		if run.Running {
			st.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, st)
	}
	if err := w.api.Status().Update(w.Context(), pod); err != nil {
		w.Fatal(err)
	}
}

// update changes the annotations that containers read, as the manager does.
func (w *world) update(color string, names ...string) {
	w.Helper()
	pod := w.pod()
	pod.Status.Conditions = []corev1.PodCondition{{Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionFalse, Reason: kruise.StartInPlaceUpdateReason}}
	if err := w.api.Status().Update(w.Context(), pod); err != nil {
		w.Fatal(err)
	}
	update(w.T, pod, func(s *kruise.InPlaceUpdateState) {
		for _, st := range pod.Status.ContainerStatuses {
			if slices.Contains(names, st.Name) {
				s.LastContainerStatuses[st.Name] = kruise.InPlaceUpdateContainerStatus{ContainerID: st.ContainerID}
			}
		}
	}, names...)
	for _, name := range names {
		pod.Annotations[name] = color
	}
	if err := w.api.Update(w.Context(), pod); err != nil {
		w.Fatal(err)
	}
}

func (w *world) connect() *cri.Runtime {
	w.Helper()
	r, err := w.agent.node.ListRuntimes(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return r[0]
}

func (w *world) reconcile() reconcile.Result {
	w.Helper()
	result, err := w.try()
	if err != nil {
		w.Fatal(err)
	}
	return result
}

func (w *world) try() (reconcile.Result, error) {
	return w.agent.Reconcile(w.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.ns, Name: "web"}})
}

// settled has the agent look again when it wants to.
func (w *world) settled() {
	w.Helper()
	if wait := w.reconcile().RequeueAfter; wait > 0 {
		w.now = w.now.Add(wait)
		w.reconcile()
	}
}

// again is an agent that starts anew.
func (w *world) again() {
	w.agent = New(w.api, w.api, cri.NewNode(w.runtime.Socket), w.events, WithRestarts(true), WithClock(func() time.Time { return w.now }))
}

// want checks the annotation, as name, run, restarts and whether its env is that of the pod,
// and what the runtime was asked for so far.
func (w *world) want(told []string, calls ...string) {
	w.Helper()
	pod := w.pod()
	set, err := runtimemeta.DecodeAnnotation(pod)
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for _, e := range set.Containers {
		c := containerOf(pod, e.Name)
		text := fmt.Sprintf("%s %s %d", e.Name, e.ContainerID, e.RestartCount)
		switch e.Hashes.ExtractedEnvFromMetadataHash {
		case 0:
			text += " unknown"
		case runtimemeta.ExpectedEnvHash(pod, c):
			text += " new"
		default:
			text += " old"
		}
		if e.Hashes.PlainHash != runtimemeta.PlainHashes(c)[0] {
			text += " of another spec"
		}
		got = append(got, text)
	}
	if !slices.Equal(got, told) {
		w.Errorf("the annotation says %q, want %q", got, told)
	}
	if got := w.runtime.RecordedCalls(); !slices.Equal(got, calls) {
		w.Errorf("the runtime was asked for %q, want %q", got, calls)
	}
}

func (w *world) said(want string) {
	w.Helper()
	select {
	case got := <-w.events.Events:
		if got != want {
			w.Errorf("the event is %q, want %q", got, want)
		}
	default:
		w.Errorf("there is no event, want %q", want)
	}
}

func TestTheAgent(t *testing.T) {
	env, _ := apiserver.Serve(t)
	api, err := client.New(env.Config, client.Options{Scheme: apiserver.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	start := func(name string, f func(w *world)) {
		t.Run(name, func(t *testing.T) {
			n++
			w := &world{T: t, api: api, runtime: critest.Start(t, "containerd"), events: record.NewFakeRecorder(100), ns: fmt.Sprintf("ns-%d", n), now: time.Now().Add(time.Minute)}
			if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}); err != nil {
				t.Fatal(err)
			}
			w.again()
			f(w)
		})
	}

	start("what containers run is written once", func(w *world) {
		w.create(colored("a", "b"))
		w.reconcile()
		w.want([]string{"a containerd://c1 0 new", "b containerd://c2 0 new"})
		version := w.pod().ResourceVersion
		w.again()
		w.runtime.StopServer() // all is known, so nothing is asked
		w.reconcile()
		if got := w.pod().ResourceVersion; got != version {
			w.Error("the pod was written again")
		}
	})
	start("nothing is written on pods of others", func(w *world) {
		pod := colored("a")
		pod.OwnerReferences = nil
		w.create(pod)
		w.reconcile()
		w.want(nil)
	})
	start("an env that another client changes restarts nothing", func(w *world) {
		w.create(colored("a"))
		w.reconcile()
		pod := w.pod()
		pod.Annotations["a"] = "red"
		if err := w.api.Update(w.Context(), pod); err != nil {
			w.Fatal(err)
		}
		w.reconcile()
		w.want([]string{"a containerd://c1 0 old"})
	})
	start("a container restarts for an annotation, once", func(w *world) {
		w.create(colored("a", "b"))
		w.reconcile()
		w.update("red", "a")
		w.settled()
		w.want([]string{"a containerd://c1 0 old", "b containerd://c2 0 new"}, "stop c1 30")
		w.said("Normal Killing Stopping containerID containerd://c1 by container meta restarter")
		w.reconcile() // the status does not say so yet
		w.again()     // nor does another agent stop it
		w.reconcile()
		w.kubelet()
		w.reconcile()
		w.reconcile()
		w.want([]string{"a containerd://c3 1 new", "b containerd://c2 0 new"}, "stop c1 30")
		if len(w.events.Events) > 0 {
			w.Errorf("it said %q", <-w.events.Events)
		}
	})
	start("the kubelet has the time to see a change before a run ends for it", func(w *world) {
		w.create(colored("a"))
		w.reconcile()
		w.update("red", "a")
		if got := w.reconcile().RequeueAfter; got != settling {
			w.Errorf("it looks again after %s, want %s", got, settling)
		}
		w.now = w.now.Add(settling - time.Millisecond)
		if got := w.reconcile().RequeueAfter; got != time.Millisecond {
			w.Errorf("it looks again after %s", got)
		}
		w.want([]string{"a containerd://c1 0 old"})
		w.again() // which does not know since when
		w.settled()
		w.want([]string{"a containerd://c1 0 old"}, "stop c1 30")
	})
	start("another change of what a run is to have is another time to wait", func(w *world) {
		w.create(colored("a"))
		w.reconcile()
		w.update("red", "a")
		w.reconcile()
		w.now = w.now.Add(settling - time.Millisecond)
		w.update("green", "a")
		if got := w.reconcile().RequeueAfter; got != settling {
			w.Errorf("it looks again after %s, want %s", got, settling)
		}
		w.want([]string{"a containerd://c1 0 old"})
	})
	start("a container whose image changes too is the kubelet's, for its grace and 30 s", func(w *world) {
		w.create(colored("a"))
		w.reconcile()
		w.update("red", "a")
		pod := w.pod()
		pod.Spec.Containers[0].Image = "web:2"
		if err := w.api.Update(w.Context(), pod); err != nil {
			w.Fatal(err)
		}
		if got := w.reconcile().RequeueAfter; got != time.Minute {
			w.Errorf("it looks again after %s, want a minute", got)
		}
		w.settled()
		w.want([]string{"a containerd://c1 0 old of another spec"}, "stop c1 30")
	})
	start("containers of a batch restart at the same time", func(w *world) {
		w.create(colored("a", "b"))
		w.reconcile()
		var both = make(chan string, 2)
		w.runtime.BeforeStop = func(id string, _ int64) error {
			both <- id
			for deadline := time.Now().Add(30 * time.Second); len(both) < 2; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					return status.Error(codes.Internal, "it waits alone")
				}
			}
			return nil
		}
		w.update("red", "a", "b")
		w.settled()
	})
	start("a run that began with the old value is ended as well, but not for ever", func(w *world) {
		w.create(colored("a"))
		w.reconcile()
		w.update("red", "a")
		var calls []string
		for i := range mostStops {
			w.settled()
			calls = append(calls, fmt.Sprintf("stop c%d 30", i+1))
			pod := w.pod()
			w.runtime.RunAs(string(pod.UID), "a", runtimemeta.PlainHashes(&pod.Spec.Containers[0])[0], "COLOR=blue")
			w.tell()
		}
		w.reconcile()
		w.want([]string{"a containerd://c4 3 old"}, calls...)
		var last string
		for len(w.events.Events) > 0 {
			last = <-w.events.Events
		}
		if !strings.HasPrefix(last, "Warning EnvNotRefreshed Container a was restarted 3 times") {
			w.Errorf("it said %q", last)
		}
		w.update("green", "a") // another value is another try
		w.settled()
		w.want([]string{"a containerd://c4 3 old"}, append(calls, "stop c4 30")...)
	})
	start("the hook runs first, with the grace of the pod", func(w *world) {
		pod := colored("a")
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](7)
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sync"}}}}
		w.create(pod)
		w.reconcile()
		w.update("red", "a")
		w.settled()
		w.want([]string{"a containerd://c1 0 old"}, "exec c1 [sync]", "stop c1 7")
	})
	start("a stop that failed is tried again", func(w *world) {
		w.create(colored("a"))
		w.reconcile()
		w.update("red", "a")
		w.runtime.BeforeStop = func(string, int64) error { return status.Error(codes.Internal, "it hangs") }
		w.now = w.now.Add(w.reconcile().RequeueAfter)
		if _, err := w.try(); err == nil || !strings.Contains(err.Error(), "restarting container a of pod "+w.ns+"/web for its env: stopping container a: ") {
			w.Errorf("got %v", err)
		}
		w.runtime.BeforeStop = nil
		w.reconcile()
		w.want([]string{"a containerd://c1 0 old"}, "stop c1 30", "stop c1 30")
	})
	start("without its gate it only tells", func(w *world) {
		w.agent = New(w.api, w.api, cri.NewNode(w.runtime.Socket), w.events)
		w.create(colored("a"))
		w.update("red", "a")
		w.settled()
		w.want([]string{"a containerd://c1 0 old"})
	})
	start("a runtime that is away is asked later", func(w *world) {
		w.create(colored("a"))
		w.runtime.StopServer()
		w.again()
		if got := w.reconcile(); got.RequeueAfter != lookAgain {
			w.Errorf("it looks again after %s", got.RequeueAfter)
		}
		w.want(nil)
		w.runtime.StartServer(w.T)
		w.again()
		w.reconcile()
		w.want([]string{"a containerd://c1 0 new"})
	})
	start("a runtime that does not tell the env has it printed", func(w *world) {
		w.runtime.NoInfo = true
		w.runtime.OnExec = printing("PATH=/bin\nTEXT=one\ntwo = 2\nCOLOR=blue\n")
		w.create(colored("a"))
		w.reconcile()
		w.want([]string{"a containerd://c1 0 new"}, "exec c1 [env]")
		w.update("red", "a")
		w.settled()
		w.want([]string{"a containerd://c1 0 old"}, "exec c1 [env]", "stop c1 30")
	})
	start("an env that is not known restarts nothing", func(w *world) {
		w.runtime.NoInfo = true
		w.runtime.OnExec = failing("no such program")
		w.create(colored("a"))
		w.reconcile()
		w.update("red", "a")
		w.settled()
		w.want([]string{"a containerd://c1 0 unknown"}, "exec c1 [env]", "exec c1 [env]")
	})
	start("an annotation that cannot be read is written anew", func(w *world) {
		pod := colored("a")
		pod.Annotations[kruise.RuntimeContainerMetaKey] = "{"
		w.create(pod)
		w.reconcile()
		w.want([]string{"a containerd://c1 0 new"})
	})
	start("a pod that goes is left alone", func(w *world) {
		pod := colored("a")
		pod.Finalizers = []string{"shop.example/wait"}
		w.create(pod)
		if err := w.api.Delete(w.Context(), w.pod(), client.GracePeriodSeconds(30)); err != nil {
			w.Fatal(err)
		}
		w.reconcile()
		w.want(nil)
	})
}
