// SPDX-License-Identifier: Apache-2.0

package serverlessprobe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
)

func marker(name, app string, probes ...v1alpha1.PodContainerProbe) *v1alpha1.PodProbeMarker {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	m.Spec.Probes = probes
	return m
}

func probe(name, container, conditionType string) v1alpha1.PodContainerProbe {
	p := v1alpha1.PodContainerProbe{Name: name, ContainerName: container, PodConditionType: conditionType}
	p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"a": "b"}}}
	return p
}

func TestWhatAPodIsToldOfItsMarkers(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	terminating := marker("gone", "game", probe("p", "server", "gone"))
	terminating.DeletionTimestamp, terminating.Finalizers = ptr.To(metav1.Now()), []string{"x/y"}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		marker("b", "game", probe("p", "server", "idle"), probe("q", "server", "busy"), probe("r", "missing", "other"), probe("s", "server", "")),
		marker("a", "game", probe("p", "sidecar", "idle")),
		marker("init", "game", probe("p", "init", "init")),
		marker("other", "web", probe("p", "server", "web")),
		terminating,
	).Build()
	step := New(c)
	for name, tc := range map[string]struct {
		app           string
		did           bool
		probes, names string
	}{
		"one that is selected": {
			"game", true,
			`[{"name":"p","containerName":"sidecar","probe":{},"podConditionType":"idle"},{"name":"q","containerName":"server","probe":{},"podConditionType":"busy"}]`, "a,b",
		},
		"one that is not": {"db", false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": tc.app}}}
			p.Spec.Containers = []corev1.Container{{Name: "server"}}
			p.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}, {Name: "init"}}
			did, err := step.Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "shop"})
			if err != nil || did != tc.did || p.Annotations[kruise.PodProbeKey] != tc.probes || p.Annotations[kruise.PodProbeMarkerListKey] != tc.names {
				t.Errorf("got %t, %v, %v", did, err, p.Annotations)
			}
		})
	}
}
