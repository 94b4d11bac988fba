// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// faultyNode is a node with a pod, whose kubelet starts containers again at once, and a manager that permits all that is asked for.
type faultyNode struct {
	runtime *critest.Runtime
	node    *cri.Node
}

// newFaultScenario is a request for two containers of a pod, and one for a third that has to wait.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	request := func(name string, second int64, containers ...string) *kruise.ContainerRecreateRequest {
		r := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(1_700_000_000+second, 0),
			Labels: map[string]string{kruise.ContainerRecreateRequestPodUIDKey: "p", kruise.ContainerRecreateRequestActiveKey: "true"},
		}}
		r.Spec.PodName = "web"
		r.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: ptr.To[int64](7)}
		for _, c := range containers {
			r.Spec.Containers = append(r.Spec.Containers, kruise.ContainerRecreateRequestContainer{
				Name: c, StatusContext: &kruise.ContainerRecreateRequestContainerContext{ContainerID: "containerd://" + c},
			})
		}
		return r
	}
	first, second := request("first", 0, "c1", "c2"), request("second", 1, "c3")
	calls := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "runtime"}} // the end state has what the runtime was asked for
	n := &faultyNode{}
	return faultinjection.Scenario{
		Objects: []client.Object{first, second, calls},
		New: func(t testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			n.runtime = critest.Start(t, "containerd")
			n.node = cri.NewNode(n.runtime.Socket)
			for _, c := range []string{"c1", "c2", "c3"} {
				n.runtime.StartRun("p", c)
			}
			return New(e.Client, e.Client, n.node, e.Events, WithClock(e.Clock))
		},
		Requests: []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}}},
		Random:   regexp.MustCompile(`containerd://c[4-6]`), // by the order of the requests
		Watches:  map[string]faultinjection.Changes{"ConfigMap": faultinjection.NoChanges},
		Others: func(c *faultinjection.Cluster) {
			runs := n.startAgain(c)
			requests := &kruise.ContainerRecreateRequestList{}
			c.Must(c.Client.List(c.Context(), requests))
			for i := range requests.Items {
				manage(c, &requests.Items[i], runs)
			}
			calls := calls.DeepCopy()
			calls.Data = map[string]string{"calls": strings.Join(slices.Sorted(slices.Values(n.runtime.RecordedCalls())), "\n")}
			c.Must(c.Client.Update(c.Context(), calls))
		},
	}
}

// startAgain starts the containers that have ended, and returns the runs of all.
func (n *faultyNode) startAgain(c *faultinjection.Cluster) map[string]cri.Container {
	runtimes, err := n.node.ListRuntimes(c.Context())
	c.Must(err)
	runs, err := runtimes[0].PodContainers(c.Context(), "p")
	c.Must(err)
	for name, run := range runs {
		if run.Exited {
			n.runtime.StartRun("p", name)
		}
	}
	runs, err = runtimes[0].PodContainers(c.Context(), "p")
	c.Must(err)
	return runs
}

// manage permits the run of each container that a request waits for, and reports the next one.
func manage(c *faultinjection.Cluster, r *kruise.ContainerRecreateRequest, runs map[string]cri.Container) {
	if r.Status.Phase != kruise.ContainerRecreateRequestRecreating {
		return
	}
	permits, err := permit.ReadPermits(r)
	c.Must(err)
	before := r.DeepCopy()
	var waiting []string
	for _, state := range r.Status.ContainerRecreateStates {
		if state.Phase == kruise.ContainerRecreateRequestPending {
			waiting = append(waiting, state.Name)
		}
	}
	added, err := permits.AddToObject(r, waiting, func(name string) string { return runs[name].ID })
	c.Must(err)
	if added {
		c.Must(c.Client.Patch(c.Context(), r, client.MergeFrom(before)))
		return
	}
	r.Status.ContainerStatusSnapshot = nil
	for _, container := range r.Spec.Containers {
		if run := runs[container.Name]; run.ID != container.StatusContext.ContainerID {
			r.Status.ContainerStatusSnapshot = append(r.Status.ContainerStatusSnapshot, kruise.ContainerStatusSnapshot{Name: run.Name, Ready: true, ContainerID: run.ID})
		}
	}
	c.PatchStatus(r, before)
}

func TestNoFailedCallLeavesAContainerUnrestarted(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestARequestThatCannotSayThatItWaitsKeepsNoOtherFromItsRestart(t *testing.T) {
	phaseOf := func(c *faultinjection.Cluster, name string) kruise.ContainerRecreateRequestPhase {
		r := &kruise.ContainerRecreateRequest{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: name}, r))
		return r.Status.Phase
	}
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Key.Name == "second" },
		Resolve: func(c *faultinjection.Cluster) {
			if phase := phaseOf(c, "first"); phase != kruise.ContainerRecreateRequestCompleted {
				t.Errorf("the request whose writes are not refused is %q", phase)
			}
		},
		Reaches: func(c *faultinjection.Cluster) string {
			if phase := phaseOf(c, "second"); phase != kruise.ContainerRecreateRequestCompleted {
				return "it is " + string(phase)
			}
			return ""
		},
	})
}
