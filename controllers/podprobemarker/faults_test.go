// SPDX-License-Identifier: Apache-2.0

package podprobemarker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

func TestNoFailedCallLeavesAMarkerWithoutEffect(t *testing.T) {
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
	faultinjection.Scenario{
		Objects: objects,
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(env.Client, env.Client, e, env.Events, WithClock(env.Clock), WithServerless(true))
		},
		Requests: faultinjection.RequestFor(marker),
		Watches:  map[string]faultinjection.Changes{"PodProbeMarker": faultinjection.ChangesOfSpec, "Node": faultinjection.NoChanges},
	}.Run(t)
}
