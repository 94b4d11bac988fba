// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a node with a probe that succeeds and one that fails, of which a user replaces the second.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	probe := func(name string) v1alpha1.ContainerProbe {
		p := v1alpha1.ContainerProbe{Name: name, ContainerName: "main"}
		p.Probe.Exec = &corev1.ExecAction{Command: []string{name}}
		p.Probe.PeriodSeconds = 3600 // one result is all
		return p
	}
	node := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Spec.PodProbes = []v1alpha1.PodProbe{{Name: "game", Namespace: "shop", UID: "p", IP: "10.0.0.1", Probes: []v1alpha1.ContainerProbe{probe("idle"), probe("broken")}}}
	return faultinjection.Scenario{
		Objects: []client.Object{node},
		New: func(t testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			runtime := critest.Start(t, "containerd")
			runtime.StartRun("p", "main")
			background := &faultinjection.Background{Environment: e}
			runtime.OnExec = func(_ string, command []string) (*runtimev1.ExecSyncResponse, error) {
				background.WaitForRound()
				if command[0] == "broken" {
					return &runtimev1.ExecSyncResponse{ExitCode: 1}, nil
				}
				return &runtimev1.ExecSyncResponse{Stdout: []byte("yes")}, nil
			}
			ahead := time.Since(e.Clock()) + time.Hour // the container started when the runtime says, which is now
			a := New(t.Context(), e.Client, cri.NewNode(runtime.Socket), e.Events, WithClock(func() time.Time { return background.Now().Add(ahead) }))
			background.Reconciler, background.News, background.IsBusy = a, a.StatusEvents(), func() bool { return isProbing(a) }
			return background
		},
		Requests: faultinjection.RequestFor(node),
		Others: func(c *faultinjection.Cluster) {
			found := &v1alpha1.NodePodProbe{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(node), found))
			if reported := found.Status.PodProbeStatuses; len(reported) == 1 && len(reported[0].ProbeStates) == 2 && found.Spec.PodProbes[0].Probes[1].Name == "broken" {
				found.Spec.PodProbes[0].Probes[1] = probe("full")
				c.Must(c.Client.Update(c.Context(), found))
			}
		},
	}
}

// isProbing reports whether a probe has no result yet.
func isProbing(a *Agent) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		if w.record == nil {
			return true
		}
	}
	return false
}

func TestNoFailedCallLeavesAResultUnreported(t *testing.T) {
	newFaultScenario(t).Run(t)
}

// A probe that fails says so in the status of its node, and the status follows once its user has another one.
func TestANodePodProbeSaysThatAProbeFails(t *testing.T) {
	find := func(c *faultinjection.Cluster) *v1alpha1.NodePodProbe {
		node := &v1alpha1.NodePodProbe{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKey{Name: "n1"}, node))
		return node
	}
	s := newFaultScenario(t)
	s.Others = nil
	s.RunWait(t, faultinjection.Wait{
		Says: `"state": "Failed"`,
		Resolve: func(c *faultinjection.Cluster) {
			node := find(c)
			full := node.Spec.PodProbes[0].Probes[1].DeepCopy()
			full.Name, full.Probe.Exec.Command = "full", []string{"full"}
			node.Spec.PodProbes[0].Probes[1] = *full
			c.Must(c.Client.Update(c.Context(), node))
		},
		Reaches: func(c *faultinjection.Cluster) string {
			states := find(c).Status.PodProbeStatuses
			if len(states) != 1 || len(states[0].ProbeStates) != 2 {
				return fmt.Sprintf("the results are %+v", states)
			}
			for _, s := range states[0].ProbeStates {
				if s.State != v1alpha1.ProbeSucceeded {
					return fmt.Sprintf("the results are %+v", states)
				}
			}
			return ""
		},
	})
}
