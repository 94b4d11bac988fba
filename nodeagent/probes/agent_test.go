// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/nodeagent/message"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// world is a node with a NodePodProbe and an agent.
type world struct {
	*testing.T
	api     client.Client
	runtime *critest.Runtime
	events  *record.FakeRecorder
	name    string
	stop    func()
	// turn is held by a Reconcile: it writes a result before it reports it.
	turn sync.Mutex
}

// agent starts an agent in place of the one before.
func (w *world) agent() {
	w.Helper()
	if w.stop != nil {
		w.stop()
	}
	ctx, cancel := context.WithCancel(w.Context())
	a := New(ctx, w.api, cri.NewNode(w.runtime.Socket), w.events)
	ended := make(chan struct{})
	go func() { // as a manager does
		defer close(ended)
		for ctx.Err() == nil {
			w.turn.Lock()
			_, err := a.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: w.name}})
			w.turn.Unlock()
			if err != nil && ctx.Err() == nil {
				w.Error(err)
			}
			select {
			case <-a.news:
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	w.stop = func() { cancel(); <-ended }
}

// behind is a client whose cache shows an object as it was once.
type behind struct {
	client.Client
	shows atomic.Pointer[v1alpha1.NodePodProbe]
}

func (b *behind) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if shown := b.shows.Load(); shown != nil {
		shown.DeepCopyInto(o.(*v1alpha1.NodePodProbe))
		return nil
	}
	return b.Client.Get(ctx, key, o, opts...)
}

// want makes the probes of a pod those that the node runs.
func (w *world) want(uid string, probes ...v1alpha1.ContainerProbe) {
	w.Helper()
	o := w.get()
	before := o.DeepCopy()
	o.Spec.PodProbes = []v1alpha1.PodProbe{{Name: "game-1", Namespace: "shop", UID: uid, IP: "127.0.0.1", Probes: probes}}
	if err := w.api.Patch(w.Context(), o, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// holdProbesOf keeps the commands that run in a container from ending, so that what is reported before
// its first result can be read, until they are released.
func (w *world) holdProbesOf(container string) (release func()) {
	held := make(chan struct{})
	w.runtime.OnExec = func(id string, _ []string) (*runtimev1.ExecSyncResponse, error) {
		if id == container {
			<-held
		}
		return answers(0, "")
	}
	release = sync.OnceFunc(func() { close(held) })
	w.Cleanup(release)
	return release
}

// waitsAnHour gives the command of a probe an hour.
func waitsAnHour(p *corev1.Probe) { p.TimeoutSeconds = 3600 }

func (w *world) get() *v1alpha1.NodePodProbe {
	w.Helper()
	o := &v1alpha1.NodePodProbe{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Name: w.name}, o); err != nil {
		w.Fatal(err)
	}
	return o
}

// status is all results in a line.
func (w *world) status() string {
	var out []string
	for _, p := range w.get().Status.PodProbeStatuses {
		for _, s := range p.ProbeStates {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", p.UID, s.Name, s.State, s.Message)))
		}
	}
	return strings.Join(out, "; ")
}

func (w *world) reaches(want string) {
	w.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got := w.status()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("it is %q, want %q", got, want)
		}
	}
}

// stays wants that nothing is written for a while.
func (w *world) stays(d time.Duration) {
	w.Helper()
	version, status := w.get().ResourceVersion, w.status()
	time.Sleep(d)
	if got := w.get(); got.ResourceVersion != version {
		w.Errorf("%q became %q", status, w.status())
	}
}

// told is all events until now, with those of every result that can be read.
func (w *world) told() (out []string) {
	w.turn.Lock()
	defer w.turn.Unlock()
	for {
		select {
		case e := <-w.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func exec(name, container string, edits ...func(*corev1.Probe)) v1alpha1.ContainerProbe {
	p := v1alpha1.ContainerProbe{Name: name, ContainerName: container}
	p.Probe.Exec = &corev1.ExecAction{Command: []string{name}}
	for _, edit := range edits {
		edit(&p.Probe.Probe)
	}
	return p
}

func answers(code int32, text string) (*runtimev1.ExecSyncResponse, error) {
	return &runtimev1.ExecSyncResponse{ExitCode: code, Stdout: []byte(text)}, nil
}

func TestTheAgent(t *testing.T) {
	_, api := apiserver.Serve(t)
	n := 0
	start := func(name string, f func(w *world)) {
		n++
		node := fmt.Sprintf("node-%d", n)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{T: t, api: api, runtime: critest.Start(t, "containerd"), events: record.NewFakeRecorder(100), name: node}
			if err := api.Create(t.Context(), &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: w.name}}); err != nil {
				t.Fatal(err)
			}
			w.agent()
			defer func() { w.stop() }()
			f(w)
		})
	}

	start("the condition of a feature gate that was off goes", func(w *world) {
		o := w.get()
		before := o.DeepCopy()
		o.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "FeatureGateOff", LastTransitionTime: metav1.Now()}}
		if err := w.api.Status().Patch(w.Context(), o, client.MergeFrom(before)); err != nil {
			w.Fatal(err)
		}
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"))
		w.reaches("u1 game#idle Succeeded")
		if got := w.get().Status.Conditions; meta.FindStatusCondition(got, kruise.ConditionStalled) != nil || !meta.IsStatusConditionTrue(got, kruise.ConditionReady) {
			w.Errorf("got %v, though the gate is on", got)
		}
	})
	start("a command succeeds and fails, and is reported once each", func(w *world) {
		var fails atomic.Bool
		w.runtime.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
			if fails.Load() {
				return answers(1, "two players\n")
			}
			return answers(0, "")
		}
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"))
		w.reaches("u1 game#idle Succeeded")
		w.stays(2500 * time.Millisecond)
		fails.Store(true)
		w.reaches("u1 game#idle Failed two players")
		w.stays(1500 * time.Millisecond)
		if got := w.told(); !slices.Equal(got, []string{"Normal KruiseProbeSucceeded Probe game#idle succeeded: ", "Normal KruiseProbeFailed Probe game#idle failed: two players"}) {
			w.Errorf("events: %q", got)
		}
	})
	start("a result is told once while the cache is behind, and the next one too", func(w *world) {
		cache := &behind{Client: w.api}
		direct := w.api
		w.api = cache
		w.agent()
		w.api = direct
		var fails atomic.Bool
		w.runtime.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
			if fails.Load() {
				return answers(1, "")
			}
			return answers(0, "")
		}
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"))
		w.reaches("u1 game#idle Succeeded")
		cache.shows.Store(w.get())
		fails.Store(true)
		w.reaches("u1 game#idle Failed")
		w.stays(2 * pause)
		fails.Store(false)
		w.reaches("u1 game#idle Succeeded")
		cache.shows.Store(nil)
		w.stays(2 * pause)
		want := []string{"Normal KruiseProbeSucceeded Probe game#idle succeeded: ", "Normal KruiseProbeFailed Probe game#idle failed: ", "Normal KruiseProbeSucceeded Probe game#idle succeeded: "}
		if got := w.told(); !slices.Equal(got, want) {
			w.Errorf("events: %q", got)
		}
	})
	start("two probes of a container have a result each", func(w *world) {
		w.runtime.OnExec = func(_ string, command []string) (*runtimev1.ExecSyncResponse, error) {
			if command[0] == "game#busy" {
				return answers(1, "no")
			}
			return answers(0, "yes")
		}
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"), exec("game#busy", "server"))
		w.reaches("u1 game#idle Succeeded yes; u1 game#busy Failed no")
		w.stays(2500 * time.Millisecond)
	})
	start("a failure counts when it came as often as the threshold says", func(w *world) {
		var calls atomic.Int32
		w.runtime.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
			if n := calls.Add(1); n == 2 || n == 3 || n >= 5 { // two in a row, and then for good
				return answers(1, strconv.Itoa(int(n)))
			}
			return answers(0, "")
		}
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server", func(p *corev1.Probe) { p.FailureThreshold = 3 }))
		w.reaches("u1 game#idle Succeeded")
		for strings.Contains(w.status(), "Succeeded") {
			time.Sleep(20 * time.Millisecond)
		}
		if got := calls.Load(); got < 7 {
			w.Errorf("it failed after %d probes, with %q", got, w.status())
		}
	})
	start("a container that ends, and the one after it", func(w *world) {
		release := w.holdProbesOf("c2")
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server", waitsAnHour))
		w.reaches("u1 game#idle Succeeded")
		w.runtime.ExitContainer("u1", "server")
		w.reaches("u1 game#idle Failed Container(server) is Non-running")
		w.runtime.StartRun("u1", "server")
		w.reaches("u1 game#idle Unknown")
		release()
		w.reaches("u1 game#idle Succeeded")
	})
	start("a container that restarts while it is probed has no result of the run before", func(w *world) {
		var calls atomic.Int32
		w.runtime.OnExec = func(id string, _ []string) (*runtimev1.ExecSyncResponse, error) {
			if calls.Add(1) == 1 {
				w.runtime.ExitContainer("u1", "server")
				w.runtime.StartRun("u1", "server")
				return answers(1, "of "+id)
			}
			return answers(0, "of "+id)
		}
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"))
		w.reaches("u1 game#idle Succeeded of c2")
		if got := w.told(); len(got) != 1 {
			w.Errorf("events: %q", got)
		}
	})
	start("an agent that restarts forgets nothing and reports nothing twice", func(w *world) {
		release := w.holdProbesOf("c2")
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server", waitsAnHour))
		w.reaches("u1 game#idle Succeeded")
		w.told()
		w.agent()
		w.stays(3 * time.Second)
		if got := w.told(); len(got) > 0 {
			w.Errorf("events: %q", got)
		}
		if got := len(w.runtime.RecordedCalls()); got < 3 {
			w.Errorf("%d probes were run", got)
		}
		w.stop()
		w.runtime.ExitContainer("u1", "server")
		w.runtime.StartRun("u1", "server")
		w.agent()
		w.reaches("u1 game#idle Unknown")
		release()
		w.reaches("u1 game#idle Succeeded")
	})
	start("a command that hangs has failed", func(w *world) {
		w.runtime.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
			return nil, status.Error(codes.DeadlineExceeded, "exec timed out")
		}
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"))
		w.reaches("u1 game#idle Failed the command did not end within 1s")
	})
	start("a runtime that hangs has failed the command, too", func(w *world) {
		release := make(chan struct{})
		w.runtime.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
			<-release
			return answers(0, "")
		}
		w.Cleanup(func() { close(release) })
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"))
		w.reaches("u1 game#idle Failed the command did not end within 1s")
	})
	start("a command that cannot be run is unknown, and says why", func(w *world) {
		var works atomic.Bool
		w.runtime.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
			if works.Load() {
				return answers(0, "")
			}
			return nil, status.Error(codes.Unknown, "executable file not found in $PATH")
		}
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"))
		w.reaches(`u1 game#idle Unknown running ["game#idle"] in container server: rpc error: code = Unknown desc = executable file not found in $PATH`)
		works.Store(true)
		w.reaches("u1 game#idle Succeeded")
		works.Store(false)
		w.stays(2500 * time.Millisecond)
	})
	start("by HTTP and TCP", func(w *world) {
		server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) {
			if q.URL.Path != "/healthz" || !strings.HasPrefix(q.UserAgent(), "kube-probe") {
				answer.WriteHeader(http.StatusNotFound)
			}
			fmt.Fprint(answer, "fine")
		}))
		defer server.Close()
		at, err := url.Parse(server.URL)
		if err != nil {
			w.Fatal(err)
		}
		port := intstr.Parse(at.Port())
		get := func(name, path string) v1alpha1.ContainerProbe {
			p := v1alpha1.ContainerProbe{Name: name, ContainerName: "server"}
			p.Probe.HTTPGet = &corev1.HTTPGetAction{Path: path, Port: port, Scheme: corev1.URISchemeHTTP}
			return p
		}
		tcp := v1alpha1.ContainerProbe{Name: "m#tcp", ContainerName: "server"}
		tcp.Probe.TCPSocket = &corev1.TCPSocketAction{Port: port}
		w.runtime.StartRun("u1", "server")
		w.want("u1", get("m#up", "/healthz"), get("m#down", "/other"), tcp)
		w.reaches("u1 m#up Succeeded fine; u1 m#down Failed HTTP probe failed with statuscode: 404; u1 m#tcp Succeeded")
		server.Close()
		for !strings.Contains(w.status(), "m#tcp Failed dial tcp 127.0.0.1:") {
			time.Sleep(20 * time.Millisecond)
		}
	})
	start("a pod of the same name with another UID has results of its own", func(w *world) {
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"))
		w.reaches("u1 game#idle Succeeded")
		w.runtime.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) { return answers(1, "") }
		w.runtime.StartRun("u2", "server")
		w.want("u2", exec("game#idle", "server"))
		w.reaches("u2 game#idle Failed")
	})
	start("nothing is probed before its initial delay, and nothing that is not there", func(w *world) {
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server", func(p *corev1.Probe) { p.InitialDelaySeconds = 60 }), exec("game#other", "missing"))
		time.Sleep(2500 * time.Millisecond)
		if got := w.runtime.RecordedCalls(); len(got) > 0 || w.status() != "" {
			w.Errorf("%q, %q", got, w.status())
		}
	})
	start("a probe that is taken away has no result any more", func(w *world) {
		w.runtime.StartRun("u1", "server")
		w.want("u1", exec("game#idle", "server"), exec("game#busy", "server"))
		w.reaches("u1 game#idle Succeeded; u1 game#busy Succeeded")
		w.want("u1", exec("game#busy", "server"))
		w.reaches("u1 game#busy Succeeded")
		w.want("u1")
		w.reaches("")
	})
}

func TestMessagesAreCut(t *testing.T) {
	if got := message.Truncate(" a\xff" + strings.Repeat("ä", 1000)); len(got) > message.MostBytes || !strings.HasPrefix(got, "aä") || strings.HasSuffix(got, "\xc3") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
