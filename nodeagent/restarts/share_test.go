// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
)

// crowd is a node with pods of many namespaces, each with a request whose container may be stopped.
type crowd struct {
	*testing.T
	api     client.Client
	runtime *critest.Runtime
	events  *record.FakeRecorder
	agent   *Agent
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kruise.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &crowd{T: t, runtime: critest.Start(t, "containerd"), events: record.NewFakeRecorder(1000)}
	c.api = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&kruise.ContainerRecreateRequest{}).Build()
	c.agent = New(c.api, c.api, cri.NewNode(c.runtime.Socket), c.events)
	return c
}

// request makes a request for a pod, and returns what to reconcile and the ID of its container.
func (c *crowd) request(namespace, pod string, hook *kruise.PreStopHandler) (reconcile.Request, string) {
	c.Helper()
	uid := namespace + "-" + pod
	id := c.runtime.StartRun(uid, "c0")
	r := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, Labels: map[string]string{
		kruise.ContainerRecreateRequestPodUIDKey: uid, kruise.ContainerRecreateRequestActiveKey: "true",
	}}}
	r.Spec.PodName = pod
	r.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: ptr.To[int64](7)}
	r.Spec.Containers = []kruise.ContainerRecreateRequestContainer{{
		Name: "c0", PreStop: hook, StatusContext: &kruise.ContainerRecreateRequestContainerContext{ContainerID: id},
	}}
	if _, err := (permit.Permits{}).AddToObject(r, []string{"c0"}, func(string) string { return id }); err != nil {
		c.Fatal(err)
	}
	if err := c.api.Create(c.Context(), r); err != nil {
		c.Fatal(err)
	}
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: pod}}, strings.TrimPrefix(id, "containerd://")
}

func (c *crowd) rounds(request reconcile.Request) {
	for range 3 {
		if _, err := c.agent.Reconcile(c.Context(), request); err != nil {
			c.Error(err)
		}
	}
}

func TestLongStopsOfOneNamespaceLeaveRoomForOthers(t *testing.T) {
	c := newCrowd(t)
	long, release, begun := map[string]bool{}, make(chan struct{}), make(chan string, 200)
	var greedy []reconcile.Request
	for i := range 2 * StopsAtOnce {
		request, id := c.request("greedy", fmt.Sprint("pod-", i), nil)
		long[id], greedy = true, append(greedy, request)
	}
	other, id := c.request("other", "web", nil)
	c.runtime.BeforeStop = func(id string, _ int64) error {
		begun <- id
		if long[id] {
			<-release
		}
		return nil
	}
	var group sync.WaitGroup
	for _, request := range greedy {
		group.Go(func() { c.rounds(request) })
	}
	for range StopsAtOnce / 2 { // those that wait for a container to stop
		<-begun
	}
	c.rounds(other)
	if got := <-begun; got != id {
		t.Errorf("container %s is stopped, want %s of the other namespace: one namespace may stop %d at a time", got, id, StopsAtOnce/2)
	}
	close(release)
	group.Wait()
	told := false
	for len(c.events.Events) > 0 {
		told = strings.Contains(<-c.events.Events, WaitingReason) || told
	}
	if !told {
		t.Error("nothing is told of a container that waits")
	}
	for _, request := range greedy {
		c.rounds(request)
	}
	if got := len(c.runtime.RecordedCalls()); got != 2*StopsAtOnce+1 {
		t.Errorf("%d containers were stopped, want all %d", got, 2*StopsAtOnce+1)
	}
}

func TestTheOutputOfAHookThatFailsIsCut(t *testing.T) {
	tests := []struct {
		name    string
		printed int
	}{{"a line", 80}, {"60 KiB", 60 << 10}, {"15 MiB", 15 << 20}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newCrowd(t)
			c.runtime.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
				return &runtimev1.ExecSyncResponse{ExitCode: 1, Stderr: bytes.Repeat([]byte("é"), test.printed/2)}, nil
			}
			request, _ := c.request("shop", "web", &kruise.PreStopHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}})
			c.rounds(request)
			hooks := 0
			for len(c.events.Events) > 0 {
				event := <-c.events.Events
				if !strings.Contains(event, kruise.FailedPreStopHookReason) {
					continue
				}
				hooks++
				if len(event) > 1024+100 || !utf8.ValidString(event) {
					t.Errorf("an event of %d bytes, valid: %v", len(event), utf8.ValidString(event))
				}
			}
			if hooks != 1 || len(c.runtime.RecordedCalls()) != 2 {
				t.Errorf("%d events of hooks, and calls %.200q: want one, and the container stopped", hooks, c.runtime.RecordedCalls())
			}
		})
	}
}
