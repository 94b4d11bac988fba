// SPDX-License-Identifier: Apache-2.0

package podprobemarker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// newFaultScenario is a marker with a pod on a node, and one on a virtual node whose probe has succeeded.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "m", Generation: 1, Finalizers: []string{kruise.NodePodProbeCleanupFinalizer}}}
	marker.Status.ObservedGeneration = 1
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	marker.Spec.Probes = []v1alpha1.PodContainerProbe{{
		Name: "idle", ContainerName: "main", PodConditionType: "game.io/idle",
		MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"idle": "true"}}},
	}}
	objects := []client.Object{marker}
	for name, kind := range map[string]string{"n1": "", "cloud": kruise.ServerlessNodeValue} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kruise.ServerlessNodeKey: kind}}})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "on-" + name, Labels: map[string]string{"app": "web"}}}
		pod.Spec = corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "main", Image: "a"}}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: "game.io/idle", Status: corev1.ConditionTrue},
		}}
		objects = append(objects, pod)
	}
	return faultinjection.Scenario{
		Objects: objects,
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock}, WithServerless(true))
		},
		Requests: faultinjection.RequestFor(marker),
		Watches:  map[string]faultinjection.Changes{"PodProbeMarker": faultinjection.ChangesOfSpec, "Node": faultinjection.NoChanges},
	}
}

func TestNoFailedCallLeavesAMarkerWithoutEffect(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestAMarkerSaysThatItsPodsCannotBeMarked(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "Pod" },
		Says:   "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			pod := &corev1.Pod{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "on-cloud"}, pod))
			if pod.Labels["idle"] != "true" {
				return "the pod is not marked"
			}
			return ""
		},
	})
}
