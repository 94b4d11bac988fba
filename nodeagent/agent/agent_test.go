// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// The agent as it runs on a node: requests of its node only, health and metrics,
// and CRDs that come after it.
func TestTheAgentOfANode(t *testing.T) {
	env := apiserver.Start(t) // without CRDs at first
	api, err := client.New(env.Config, client.Options{Scheme: apiserver.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	runtime := critest.Start(t, "containerd")
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	id := runtime.StartRun("u1", "app")
	request := func(name, node string) *kruise.ContainerRecreateRequest {
		r := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{
			kruise.ContainerRecreateRequestPodUIDKey: "u1", kruise.ContainerRecreateRequestNodeNameKey: node, kruise.ContainerRecreateRequestActiveKey: "true",
		}, Annotations: map[string]string{permit.Key: `{"app":"` + id + `"}`}}}
		r.Spec.PodName = "web-" + name
		r.Spec.Containers = []kruise.ContainerRecreateRequestContainer{{Name: "app", StatusContext: &kruise.ContainerRecreateRequestContainerContext{ContainerID: id}}}
		if err := api.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return r
	}

	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.Addr, o.Pprof = free(t), false
	o.sockets, o.SocketFile = filepath.Dir(runtime.Socket), filepath.Base(runtime.Socket)
	o.env = environment{node: "n1"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o, env.Config) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	eventually(t, "a check that fails", func() bool {
		return strings.HasPrefix(ask(t, o.Addr, "/healthz"), "500 check nodeImageInformerSynced failed, err: ")
	})
	apiserver.Install(t, env, apiserver.CRDs(t, ""))
	for _, node := range []string{"n1", "n2"} {
		o := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
		probe := v1alpha1.ContainerProbe{Name: "m#p", ContainerName: "app"}
		probe.Probe.Exec = &corev1.ExecAction{Command: []string{"true"}}
		o.Spec.PodProbes = []v1alpha1.PodProbe{{Name: "web", Namespace: "shop", UID: "u9", Probes: []v1alpha1.ContainerProbe{probe}}}
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	other := request("other", "n2")
	eventually(t, "healthy", func() bool { return ask(t, o.Addr, "/healthz") == "200 ok" })
	mine := request("mine", "n1")
	eventually(t, "the request of this node is carried out", func() bool {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); err != nil {
			t.Fatal(err)
		}
		states := mine.Status.ContainerRecreateStates
		return len(states) == 1 && states[0].IsKilled
	})
	if err := api.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "other"}, other); err != nil || other.Status.Phase != "" {
		t.Errorf("the request of another node: %v, %v", other.Status, err)
	}
	if got := runtime.RecordedCalls(); len(got) != 1 {
		t.Errorf("the runtime was asked for %q", got)
	}
	runtime.StartRun("u9", "app")
	probed := func(node string) bool {
		o := &v1alpha1.NodePodProbe{}
		if err := api.Get(t.Context(), client.ObjectKey{Name: node}, o); err != nil {
			t.Fatal(err)
		}
		return len(o.Status.PodProbeStatuses) == 1 && o.Status.PodProbeStatuses[0].ProbeStates[0].State == v1alpha1.ProbeSucceeded
	}
	eventually(t, "the probe of this node is run", func() bool { return probed("n1") })
	if probed("n2") {
		t.Error("it ran the probe of another node")
	}
	if got := ask(t, o.Addr, "/metrics"); !strings.Contains(got, `workqueue_queue_duration_seconds_count{controller="crr",name="crr"}`) {
		t.Errorf("no metrics of the queue in\n%s", got)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.QPS, o.Burst = -1, -1
	err = o.Complete()
	for _, want := range []string{"NODE_NAME is empty", "--rest-config-qps is -1", "--rest-config-burst is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func free(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func ask(t *testing.T, addr, path string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		return err.Error()
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not %s after a minute", what)
		}
	}
}
