// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// world is a node with a pod in a namespace of its own.
type world struct {
	*testing.T
	api     client.Client
	runtime *critest.Runtime
	agent   *Agent
	events  *record.FakeRecorder
	ns      string
}

func (w *world) reconcile() (reconcile.Result, error) {
	w.Helper()
	return w.agent.Reconcile(w.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.ns, Name: "web"}})
}

// rounds lets the agent work until nothing changes.
func (w *world) rounds() {
	w.Helper()
	for range 6 {
		if _, err := w.reconcile(); err != nil {
			w.Fatal(err)
		}
	}
}

// request makes a request for the current runs of containers.
func (w *world) request(name string, edit func(*kruise.ContainerRecreateRequest), ids ...string) *kruise.ContainerRecreateRequest {
	w.Helper()
	r := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: map[string]string{
		kruise.ContainerRecreateRequestPodUIDKey: w.ns, kruise.ContainerRecreateRequestActiveKey: "true",
	}}}
	r.Spec.PodName = "web"
	r.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: ptr.To[int64](7)}
	for i, id := range ids {
		r.Spec.Containers = append(r.Spec.Containers, kruise.ContainerRecreateRequestContainer{
			Name: fmt.Sprintf("c%d", i), StatusContext: &kruise.ContainerRecreateRequestContainerContext{ContainerID: id},
		})
	}
	if edit != nil {
		edit(r)
	}
	if err := w.api.Create(w.Context(), r); err != nil {
		w.Fatal(err)
	}
	return r
}

// permit does what the manager does: it lets runs end.
func (w *world) permit(r *kruise.ContainerRecreateRequest, runs permit.Permits) {
	w.Helper()
	r = w.get(r.Name)
	before := r.DeepCopy()
	had, err := permit.ReadPermits(r)
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for name := range runs {
		names = append(names, name)
	}
	if added, err := had.AddToObject(r, names, func(name string) string { return runs[name] }); err != nil || !added {
		w.Fatalf("added %t, %v", added, err)
	}
	if err := w.api.Patch(w.Context(), r, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// snapshot does what the manager does: it reports a new run that is ready.
func (w *world) snapshot(name, container, id string) {
	w.Helper()
	r := w.get(name)
	before := r.DeepCopy()
	r.Status.ContainerStatusSnapshot = append(r.Status.ContainerStatusSnapshot, kruise.ContainerStatusSnapshot{Name: container, Ready: true, RestartCount: 1, ContainerID: id})
	if err := w.api.Status().Patch(w.Context(), r, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get(name string) *kruise.ContainerRecreateRequest {
	w.Helper()
	r := &kruise.ContainerRecreateRequest{}
	if err := w.api.Get(w.Context(), types.NamespacedName{Namespace: w.ns, Name: name}, r); err != nil {
		w.Fatal(err)
	}
	return r
}

// status is a request in a line.
func (w *world) status(name string) string {
	w.Helper()
	s := w.get(name).Status
	out := []string{string(s.Phase)}
	for _, c := range s.ContainerRecreateStates {
		text := c.Name + " " + string(c.Phase)
		if c.IsKilled {
			text += " killed"
		}
		if c.Message != "" {
			text += ": " + c.Message
		}
		out = append(out, text)
	}
	if s.Message != "" {
		out = append(out, s.Message)
	}
	return strings.Join(out, "; ")
}

func (w *world) want(name, status string, calls ...string) {
	w.Helper()
	if got := w.status(name); got != status {
		w.Errorf("%s is %q, want %q", name, got, status)
	}
	if got := w.runtime.RecordedCalls(); !slices.Equal(got, calls) {
		w.Errorf("the runtime was asked for %q, want %q", got, calls)
	}
}

func TestTheAgent(t *testing.T) {
	env, _ := apiserver.Serve(t)
	api, err := client.NewWithWatch(env.Config, client.Options{Scheme: apiserver.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	start := func(name string, f func(w *world)) {
		t.Run(name, func(t *testing.T) {
			n++
			w := &world{T: t, api: api, runtime: critest.Start(t, "containerd"), events: record.NewFakeRecorder(100), ns: fmt.Sprintf("ns-%d", n)}
			if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}); err != nil {
				t.Fatal(err)
			}
			w.agent = New(api, api, cri.NewNode(w.runtime.Socket), w.events)
			f(w)
		})
	}

	start("a container is restarted when the manager permits it", func(w *world) {
		id := w.runtime.StartRun(w.ns, "c0")
		r := w.request("r", nil, id)
		w.rounds()
		w.want("r", "Recreating; c0 Pending")
		w.permit(r, permit.Permits{"c0": id})
		w.rounds()
		w.want("r", "Recreating; c0 Recreating killed", "stop c1 7")
		if event := <-w.events.Events; event != "Normal Killing Stopping container c0 by ContainerRecreateRequest r" {
			t.Errorf("got %q", event)
		}
		next := w.runtime.StartRun(w.ns, "c0")
		w.rounds()
		w.want("r", "Recreating; c0 Recreating killed", "stop c1 7")
		w.snapshot("r", "c0", next)
		w.rounds()
		w.want("r", "Completed; c0 Succeeded killed", "stop c1 7")
		if w.get("r").Status.CompletionTime == nil {
			t.Error("it has no time of completion")
		}
	})

	start("a permit is for one run only", func(w *world) {
		id := w.runtime.StartRun(w.ns, "c0")
		r := w.request("r", func(r *kruise.ContainerRecreateRequest) { r.Spec.Strategy.ForceRecreate = true }, id)
		w.rounds()
		w.permit(r, permit.Permits{"c0": id})
		w.runtime.ExitContainer(w.ns, "c0") // an agent died after the stop, before it wrote
		next := w.runtime.StartRun(w.ns, "c0")
		w.rounds()
		w.want("r", "Recreating; c0 Recreating killed")
		w.snapshot("r", "c0", next)
		w.rounds()
		w.want("r", "Completed; c0 Succeeded killed")
	})

	start("in order, the second waits for the first", func(w *world) {
		a, b := w.runtime.StartRun(w.ns, "c0"), w.runtime.StartRun(w.ns, "c1")
		r := w.request("r", func(r *kruise.ContainerRecreateRequest) { r.Spec.Strategy.OrderedRecreate = true }, a, b)
		w.rounds()
		w.permit(r, permit.Permits{"c0": a, "c1": b})
		w.rounds()
		w.want("r", "Recreating; c0 Recreating killed; c1 Pending", "stop c1 7")
		w.snapshot("r", "c0", w.runtime.StartRun(w.ns, "c0"))
		w.rounds()
		w.want("r", "Recreating; c0 Succeeded killed; c1 Recreating killed", "stop c1 7", "stop c2 7")
	})

	start("one kill a round without an order", func(w *world) {
		a, b := w.runtime.StartRun(w.ns, "c0"), w.runtime.StartRun(w.ns, "c1")
		r := w.request("r", nil, a, b)
		w.rounds()
		w.permit(r, permit.Permits{"c0": a, "c1": b})
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.want("r", "Recreating; c0 Recreating killed; c1 Pending", "stop c1 7")
		w.rounds()
		w.want("r", "Recreating; c0 Recreating killed; c1 Recreating killed", "stop c1 7", "stop c2 7")
	})

	for policy, want := range map[kruise.ContainerRecreateRequestFailurePolicyType][]string{
		"Fail":   {"Completed; c0 Failed: kill container error: stopping container c0: rpc error: code = Internal desc = it hangs; c1 Pending", "stop c1 7"},
		"Ignore": {"Recreating; c0 Failed: kill container error: stopping container c0: rpc error: code = Internal desc = it hangs; c1 Recreating killed", "stop c1 7", "stop c2 7"},
	} {
		start("a stop that fails, with policy "+string(policy), func(w *world) {
			a, b := w.runtime.StartRun(w.ns, "c0"), w.runtime.StartRun(w.ns, "c1")
			w.runtime.BeforeStop = func(id string, _ int64) error {
				if id == "c1" {
					return status.Error(codes.Internal, "it hangs")
				}
				return nil
			}
			r := w.request("r", func(r *kruise.ContainerRecreateRequest) { r.Spec.Strategy.FailurePolicy = policy }, a, b)
			w.rounds()
			w.permit(r, permit.Permits{"c0": a, "c1": b})
			w.rounds()
			w.want("r", want[0], want[1:]...)
		})
	}

	start("the report of a kill is not lost when the manager writes at the same time", func(w *world) {
		id := w.runtime.StartRun(w.ns, "c0")
		r := w.request("r", nil, id)
		w.rounds()
		w.permit(r, permit.Permits{"c0": id})
		w.runtime.BeforeStop = func(string, int64) error {
			w.snapshot("r", "x", "containerd://x")
			return nil
		}
		w.rounds()
		w.want("r", "Recreating; c0 Recreating killed", "stop c1 7")
		if len(w.get("r").Status.ContainerStatusSnapshot) != 1 {
			t.Error("what the manager wrote is lost")
		}
	})

	start("an agent that cannot write stops nothing twice", func(w *world) {
		id := w.runtime.StartRun(w.ns, "c0")
		r := w.request("r", nil, id)
		w.rounds()
		w.permit(r, permit.Permits{"c0": id})
		dead := errors.New("the agent was killed")
		kept := w.agent.client
		w.agent.client = interceptor.NewClient(api, interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return dead
			},
		})
		if _, err := w.reconcile(); !errors.Is(err, dead) {
			t.Fatalf("got %v", err)
		}
		w.agent.client = kept
		next := w.runtime.StartRun(w.ns, "c0")
		w.snapshot("r", "c0", next)
		w.rounds()
		w.want("r", "Completed; c0 Succeeded killed", "stop c1 7")
	})

	start("nothing is stopped for a request that has ended since it was read", func(w *world) {
		id := w.runtime.StartRun(w.ns, "c0")
		r := w.request("r", nil, id)
		w.rounds()
		w.permit(r, permit.Permits{"c0": id})
		stale := w.get("r")
		before := stale.DeepCopy()
		stale.Status.Phase = completed
		if err := api.Status().Patch(t.Context(), stale, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		s, runtime, why, err := w.agent.inspectContainers(t.Context(), before)
		if err != nil || why != "" {
			t.Fatal(err, why)
		}
		if _, err := w.agent.advanceRequest(t.Context(), s, runtime, 0); err != nil {
			t.Fatal(err)
		}
		w.want("r", "Completed; c0 Pending")
	})

	start("a second request of the pod waits", func(w *world) {
		id := w.runtime.StartRun(w.ns, "c0")
		w.request("a", nil, id)
		w.request("b", nil, id)
		w.rounds()
		w.want("a", "Recreating; c0 Pending")
		w.want("b", "Pending")
	})

	start("the pod leaves its services before anything is stopped", func(w *world) {
		id := w.runtime.StartRun(w.ns, "c0")
		r := w.request("r", func(r *kruise.ContainerRecreateRequest) {
			r.Spec.Strategy.UnreadyGracePeriodSeconds = ptr.To[int64](600)
		}, id)
		w.permit(r, permit.Permits{"c0": id})
		w.rounds()
		w.want("r", "Recreating")
	})

	start("a request that no runtime can serve", func(w *world) {
		w.runtime.StartRun(w.ns, "c0")
		w.request("r", nil, "docker://x")
		w.rounds()
		w.want("r", "Completed; failed to find runtime service: the node has no container runtime docker, only containerd")
	})

	start("a request without a run to end", func(w *world) {
		w.request("r", func(r *kruise.ContainerRecreateRequest) { r.Spec.Containers[0].StatusContext = nil }, "containerd://x")
		w.rounds()
		w.want("r", "Completed; failed to find runtime service: container c0 has no statusContext")
	})

	start("a runtime that restarts is waited for, one that stays away is not", func(w *world) {
		now := time.Now().Add(time.Hour) // the API server has another clock
		w.agent.now = func() time.Time { return now }
		id := w.runtime.StartRun(w.ns, "c0")
		w.runtime.StopServer()
		w.request("r", nil, id)
		if got, err := w.reconcile(); err != nil || got.RequeueAfter == 0 {
			t.Fatalf("got %v, %v", got, err)
		}
		w.want("r", "Recreating")
		now = now.Add(mostAbsence)
		w.rounds()
		w.want("r", "Recreating")
		w.runtime.StartServer(w.T)
		time.Sleep(1100 * time.Millisecond) // a runtime that was not found is not looked for sooner
		w.rounds()
		w.want("r", "Recreating; c0 Pending")
		w.runtime.StopServer()
		now = now.Add(time.Second) // another absence has its own time
		w.rounds()
		w.want("r", "Recreating; c0 Pending")
		now = now.Add(mostAbsence + time.Second)
		w.rounds()
		if got := w.status("r"); !strings.HasPrefix(got, "Completed; c0 Pending; failed to find runtime service: ") {
			t.Errorf("got %q", got)
		}
	})

	start("a container that the node does not have", func(w *world) {
		w.request("r", nil, "containerd://gone")
		w.rounds()
		w.want("r", "Recreating; c0 Pending: not found container on Node")
	})

	start("a malformed annotation stops nothing", func(w *world) {
		id := w.runtime.StartRun(w.ns, "c0")
		w.request("r", func(r *kruise.ContainerRecreateRequest) { r.Annotations = map[string]string{permit.Key: "{"} }, id)
		w.rounds()
		w.want("r", "Recreating; c0 Pending")
		if event := <-w.events.Events; !strings.Contains(event, "InvalidAnnotation") {
			t.Errorf("got %q", event)
		}
	})

	asked := ""
	web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		asked += q.Host + q.URL.String() + " "
		if q.URL.Path == "/no" {
			http.Error(out, "no", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(web.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(web.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		hook  *kruise.PreStopHandler
		calls []string
		asked string
		event string
	}{
		"a command":         {&kruise.PreStopHandler{Exec: &corev1.ExecAction{Command: []string{"sync", "now"}}}, []string{"exec c1 [sync now]", "stop c1 7"}, "", ""},
		"an HTTP request":   {&kruise.PreStopHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/stop?now=1", Port: intstr.FromString("http"), HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "shop"}}}}, []string{"stop c1 7"}, "shop/stop?now=1 ", ""},
		"a request refused": {&kruise.PreStopHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/no", Port: intstr.Parse(port), Host: "localhost"}}, []string{"stop c1 7"}, "localhost:" + port + "/no ", "503 Service Unavailable"},
		"a connection":      {&kruise.PreStopHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.Parse(port)}}, []string{"stop c1 7"}, "", ""},
		"a pause":           {&kruise.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 1}}, []string{"stop c1 6"}, "", ""},
		"a port unknown":    {&kruise.PreStopHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("admin")}}, []string{"stop c1 7"}, "", `container c0 has no port "admin"`},
	} {
		start("before the stop goes "+name, func(w *world) {
			asked = ""
			id := w.runtime.StartRun(w.ns, "c0")
			w.runtime.SetAddress(w.ns, "127.0.0.1")
			r := w.request("r", func(r *kruise.ContainerRecreateRequest) {
				r.Spec.Containers[0].PreStop = tc.hook
				r.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: intstr.Parse(port).IntVal}}
			}, id)
			w.rounds()
			w.permit(r, permit.Permits{"c0": id})
			w.rounds()
			w.want("r", "Recreating; c0 Recreating killed", tc.calls...)
			if asked != tc.asked {
				t.Errorf("asked %q, want %q", asked, tc.asked)
			}
			<-w.events.Events // Killing
			select {
			case event := <-w.events.Events:
				if tc.event == "" || !strings.Contains(event, "FailedPreStopHook") || !strings.Contains(event, tc.event) {
					t.Errorf("got %q", event)
				}
			default:
				if tc.event != "" {
					t.Errorf("no event of %q", tc.event)
				}
			}
		})
	}
}
