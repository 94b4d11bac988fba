// SPDX-License-Identifier: Apache-2.0

package containermeta

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a pod of two containers, of which the annotation that the first one reads is updated in place.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	pod := colored("a", "b")
	pod.Status.ContainerStatuses = nil
	calls := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "runtime"}} // the end state has what the runtime was asked for
	var runtime *critest.Runtime
	var node *cri.Node
	return faultinjection.Scenario{
		Objects: []client.Object{pod, calls},
		New: func(t testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			runtime = critest.Start(t, "containerd")
			node = cri.NewNode(runtime.Socket)
			return New(e.Client, e.Client, node, e.Events, WithRestarts(true), WithClock(e.Clock))
		},
		Requests: faultinjection.RequestFor(pod),
		Watches:  map[string]faultinjection.Changes{"ConfigMap": faultinjection.NoChanges},
		Others: func(c *faultinjection.Cluster) {
			found := &corev1.Pod{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(pod), found))
			runContainers(c, runtime, node, found)
			repaint(t, c, found)
			calls := calls.DeepCopy()
			calls.Data = map[string]string{"calls": strings.Join(runtime.RecordedCalls(), "\n")}
			c.Must(c.Client.Update(c.Context(), calls))
		},
	}
}

// runContainers is a kubelet that starts each container that does not run, and reports the runs.
func runContainers(c *faultinjection.Cluster, runtime *critest.Runtime, node *cri.Node, pod *corev1.Pod) {
	runtimes, err := node.ListRuntimes(c.Context())
	c.Must(err)
	runs, err := runtimes[0].PodContainers(c.Context(), string(pod.UID))
	c.Must(err)
	before := pod.DeepCopy()
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if runs[container.Name].Running {
			continue
		}
		id := runtime.RunAs(string(pod.UID), container.Name, runtimemeta.PlainHashes(container)[0], "COLOR="+pod.Annotations[container.Name])
		st := statusOf(pod, container.Name)
		if st == nil {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name})
			st = &pod.Status.ContainerStatuses[len(pod.Status.ContainerStatuses)-1]
		}
		st.ContainerID, st.State.Running = id, &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.Now)}
	}
	c.PatchStatus(pod, before)
}

// repaint is a manager that updates the annotation of container a in place once the agent has told what runs.
func repaint(t *testing.T, c *faultinjection.Cluster, pod *corev1.Pod) {
	set, err := runtimemeta.DecodeAnnotation(pod)
	c.Must(err)
	if len(set.Containers) < 2 || pod.Annotations["a"] != "blue" {
		return
	}
	before := pod.DeepCopy()
	update(t, pod, nil, "a")
	condition := pod.Status.Conditions
	pod.Status = before.Status
	pod.Annotations["a"] = "red"
	c.Must(c.Client.Update(c.Context(), pod))
	before = pod.DeepCopy()
	pod.Status.Conditions = condition
	c.PatchStatus(pod, before)
}

func TestAPodTellsThatWhatItsContainersRunCannotBeWrittenWhileItLasts(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "Pod" },
		Tells:  "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			pods := &corev1.PodList{}
			c.Must(c.Client.List(c.Context(), pods))
			if set, err := runtimemeta.DecodeAnnotation(&pods.Items[0]); err != nil || len(set.Containers) != 2 {
				return "the annotation is not written"
			}
			return ""
		},
	})
}

func TestNoFailedCallLeavesAContainerWithItsOldEnv(t *testing.T) {
	newFaultScenario(t).Run(t)
}
