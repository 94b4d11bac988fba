// SPDX-License-Identifier: Apache-2.0

package sidecarterminator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/restartrequest"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is a pod on an API server.
type world struct {
	*testing.T
	api    client.Client
	r      *Reconciler
	events *record.FakeRecorder
	key    client.ObjectKey
}

func sidecar(name string, more ...string) corev1.Container {
	c := corev1.Container{Name: name, Image: "b", Env: []corev1.EnvVar{{Name: kruise.TerminateSidecarWhenJobExitEnv, Value: "True"}}}
	for i := 0; i+1 < len(more); i += 2 {
		c.Env = append(c.Env, corev1.EnvVar{Name: more[i], Value: more[i+1]})
	}
	return c
}

func (w *world) pod() *corev1.Pod {
	w.Helper()
	o := &corev1.Pod{}
	if err := w.api.Get(w.Context(), w.key, o); err != nil {
		w.Fatal(err)
	}
	return o
}

// ends writes the exit codes of containers, as the kubelet does; the others run.
func (w *world) ends(codes map[string]int32) {
	w.Helper()
	o := w.pod()
	before := o.DeepCopy()
	o.Status.ContainerStatuses = nil
	if o.Status.Phase == corev1.PodPending {
		o.Status.Phase = corev1.PodRunning
	}
	for _, c := range o.Spec.Containers {
		s := corev1.ContainerStatus{Name: c.Name, ContainerID: "containerd://" + c.Name}
		if code, ok := codes[c.Name]; ok {
			s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code}
		} else {
			s.State.Running = &corev1.ContainerStateRunning{}
		}
		o.Status.ContainerStatuses = append(o.Status.ContainerStatuses, s)
	}
	if err := w.api.Status().Patch(w.Context(), o, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
	for range 2 { // the second time finds what the first did
		if _, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: w.key}); err != nil {
			w.Fatal(err)
		}
	}
}

// asked are the requests of the pod, with their containers, in a line.
func (w *world) asked() string {
	w.Helper()
	list := &kruise.ContainerRecreateRequestList{}
	if err := w.api.List(w.Context(), list, client.InNamespace(w.key.Namespace)); err != nil {
		w.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		o := &list.Items[i]
		if len(o.OwnerReferences) != 1 || o.OwnerReferences[0].Name != w.key.Name || !o.Spec.Strategy.ForceRecreate || o.Spec.Strategy.FailurePolicy != kruise.ContainerRecreateRequestFailurePolicyIgnore {
			w.Errorf("got %+v", o)
		}
		text := strings.Replace(o.Name, string(w.pod().UID), "UID", 1)
		for _, c := range o.Spec.Containers {
			text += " " + c.Name
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// request is the request of the pod that the suffix of its name says.
func (w *world) request(suffix string) *kruise.ContainerRecreateRequest {
	w.Helper()
	o := &kruise.ContainerRecreateRequest{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: w.key.Namespace, Name: "sidecar-termination-" + string(w.pod().UID) + suffix}, o); err != nil {
		w.Fatal(err)
	}
	return o
}

// completes ends a request, as the node agent or the manager does.
func (w *world) completes(o *kruise.ContainerRecreateRequest, at time.Time) {
	w.Helper()
	before := o.DeepCopy()
	o.Status.Phase, o.Status.CompletionTime = kruise.ContainerRecreateRequestCompleted, ptr.To(metav1.NewTime(at))
	if err := w.api.Status().Patch(w.Context(), o, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// looks reconciles the pod, which is to be looked at again at most a second before after.
func (w *world) looks(after time.Duration) {
	w.Helper()
	result, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: w.key})
	if err != nil || result.RequeueAfter > after || result.RequeueAfter < after-time.Second {
		w.Errorf("it is looked at again after %s, want %s: %v", result.RequeueAfter, after, err)
	}
}

func (w *world) told() (out []string) {
	for {
		select {
		case e := <-w.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func TestTheSidecarTerminator(t *testing.T) {
	_, api := apiserver.Serve(t)
	e := rules.Engine(t, "")
	for name, labels := range map[string]map[string]string{"n1": nil, "cloud": {kruise.ServerlessNodeKey: kruise.ServerlessNodeValue}} {
		if err := api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	draining := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "draining", Finalizers: []string{"example.com/drain"}}}
	if err := errors.Join(api.Create(t.Context(), draining), api.Delete(t.Context(), draining)); err != nil {
		t.Fatal(err)
	}
	n := 0
	start := func(name, node string, policy corev1.RestartPolicy, sidecars []corev1.Container, f func(w *world)) {
		t.Run(name, func(t *testing.T) {
			n++
			w := &world{T: t, api: api, events: record.NewFakeRecorder(20), key: client.ObjectKey{Namespace: fmt.Sprintf("ns-%d", n), Name: "report-1"}}
			w.r = New(reconcile.Deps{Client: api, Live: api, Events: w.events, Engine: e})
			if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.key.Namespace}}); err != nil {
				t.Fatal(err)
			}
			o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: w.key.Name}}
			o.Spec = corev1.PodSpec{NodeName: node, RestartPolicy: policy, Containers: append([]corev1.Container{{Name: "main", Image: "a"}}, sidecars...)}
			if err := api.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			f(w)
		})
	}
	const never, onFailure = corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	ignored := sidecar("log", kruise.TerminateSidecarIgnoreExitCodeEnv, "true")

	start("a sidecar ends when the main container has, once", "n1", never, []corev1.Container{sidecar("proxy")}, func(w *world) {
		w.ends(nil)
		if got := w.asked(); got != "" {
			w.Errorf("while all run: %s", got)
		}
		w.ends(map[string]int32{"main": 1})
		if got := w.asked(); got != "sidecar-termination-UID proxy" {
			w.Errorf("got %q", got)
		}
		if got := w.told(); !slices.Equal(got, []string{"Normal SidecarTerminator Kruise SidecarTerminator is trying to terminate sidecar [proxy] using crr"}) {
			w.Errorf("events: %q", got)
		}
	})
	start("a sidecar that runs after its request has ended is asked to end again, less and less often", "n1", never, []corev1.Container{sidecar("proxy")}, func(w *world) {
		now := time.Now().Add(time.Minute) // no request ends in the second before it was made
		w.r.Now = func() time.Time { return now }
		w.ends(map[string]int32{"main": 0})
		for i, delay := range []time.Duration{30 * time.Second, time.Minute} {
			attempt := i + 2
			before := w.request("")
			w.completes(before, now)
			w.looks(delay)
			if again := w.request(""); again.UID != before.UID {
				w.Errorf("it did not wait for %s", delay)
			}
			now = now.Add(delay + time.Second)
			w.looks(restartrequest.PollInterval)
			if again := w.request(""); again.UID == before.UID || restartrequest.AttemptNumber(again) != attempt || w.asked() != "sidecar-termination-UID proxy" {
				w.Errorf("attempt %d: got %s, %v", attempt, w.asked(), again.Annotations)
			}
		}
		w.ends(map[string]int32{"main": 0, "proxy": 0})
		w.looks(0)
	})
	start("a sidecar that runs when both requests of the pod are of others is asked to end as well", "n1", onFailure, []corev1.Container{sidecar("a"), sidecar("b"), sidecar("c")}, func(w *world) {
		now := time.Now()
		w.r.Now = func() time.Time { return now }
		w.ends(map[string]int32{"main": 0, "b": 1, "c": 1}) // the kubelet starts b and c again
		w.completes(w.request(""), now)
		w.ends(map[string]int32{"main": 0, "a": 0, "c": 1})
		w.completes(w.request("-ignored"), now)
		w.ends(map[string]int32{"main": 0, "a": 0, "b": 0})
		now = now.Add(time.Hour)
		w.looks(restartrequest.PollInterval)
		if got := w.asked(); !strings.Contains(got, " c") {
			w.Errorf("got %q, so that no request ends c", got)
		}
	})
	start("with restartPolicy OnFailure a failure is no end", "n1", onFailure, []corev1.Container{sidecar("proxy")}, func(w *world) {
		w.ends(map[string]int32{"main": 1})
		if got := w.asked(); got != "" {
			w.Errorf("got %q", got)
		}
		w.ends(map[string]int32{"main": 0})
		if got := w.asked(); got != "sidecar-termination-UID proxy" {
			w.Errorf("got %q", got)
		}
	})
	start("a node that is being deleted waits for its pods", "draining", never, []corev1.Container{sidecar("proxy")}, func(w *world) {
		w.ends(map[string]int32{"main": 0})
		if got := w.asked(); got != "sidecar-termination-UID proxy" {
			w.Errorf("got %q", got)
		}
	})
	start("a rule of the main container starts it again", "n1", never, []corev1.Container{sidecar("proxy")}, func(w *world) {
		o := w.pod()
		o.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
		o.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action: corev1.ContainerRestartRuleActionRestart, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
		}}
		for code, want := range map[int32]int{42: 0, 1: 1} {
			o.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}},
				{Name: "proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			}
			in := w.r.buildTerminationInput(o, false)
			answer, _ := engine.Decide(w.Context(), w.r.Engine, points.TerminationPoint(), decision.Subject{Kind: "Pod", Namespace: o.Namespace, Name: o.Name}, in)
			if got := answer.ClampAnswer(in).Stop; len(got) != want {
				w.Errorf("after exit code %d it ends %v", code, got)
			}
		}
	})
	start("a container without the env is no sidecar", "n1", never, []corev1.Container{{Name: "other", Image: "b"}}, func(w *world) {
		w.ends(map[string]int32{"main": 0})
		if got := w.asked(); got != "" {
			w.Errorf("got %q", got)
		}
	})
	start("those whose exit code is ignored end after the others, and the pod by its main container", "n1", never, []corev1.Container{sidecar("proxy"), ignored}, func(w *world) {
		w.ends(map[string]int32{"main": 0})
		if got := w.asked(); got != "sidecar-termination-UID proxy" || w.pod().Status.Phase != corev1.PodRunning {
			w.Errorf("got %q, %s", got, w.pod().Status.Phase)
		}
		w.ends(map[string]int32{"main": 0, "proxy": 0})
		if got := w.asked(); got != "sidecar-termination-UID proxy, sidecar-termination-UID-ignored log" {
			w.Errorf("got %q", got)
		}
		o := w.pod()
		i := slices.IndexFunc(o.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == "SidecarTerminated" })
		if o.Status.Phase != corev1.PodSucceeded || i < 0 || o.Status.Conditions[i].Message != "Terminated by Sidecar Terminator" {
			w.Errorf("got %s, %v", o.Status.Phase, o.Status.Conditions)
		}
	})
	start("a pod whose main container failed ends as Failed", "n1", never, []corev1.Container{ignored}, func(w *world) {
		w.ends(map[string]int32{"main": 3})
		if got := w.asked(); got != "sidecar-termination-UID log" || w.pod().Status.Phase != corev1.PodFailed {
			w.Errorf("got %q, %s", got, w.pod().Status.Phase)
		}
	})
	start("on a virtual node a sidecar ends by its image", "cloud", never, []corev1.Container{sidecar("proxy", kruise.TerminateSidecarWhenJobExitWithImageEnv, "exit:1"), sidecar("other")}, func(w *world) {
		w.ends(map[string]int32{"main": 0})
		o := w.pod()
		if got := w.asked(); got != "" || o.Spec.Containers[1].Image != "exit:1" || o.Spec.Containers[2].Image != "b" {
			w.Errorf("got %q, %s, %s", got, o.Spec.Containers[1].Image, o.Spec.Containers[2].Image)
		}
		if got := w.told(); !slices.Equal(got, []string{"Normal SidecarTerminator Kruise SidecarTerminator is trying to terminate sidecar [proxy] using in-place update"}) {
			w.Errorf("events: %q", got)
		}
	})
}
