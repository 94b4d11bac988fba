// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/review"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// What is built, and what of it each gate has the API server send.
func TestTheStepsThatAreBuilt(t *testing.T) {
	const deletes, updates, all = features.PodUnavailableBudgetDeleteGate, features.PodUnavailableBudgetUpdateGate, features.KruisePodReadinessGate
	readiness, sidecars, barriers, annotation, ask, probes, liveness := "adding the readiness gate", "adding the containers of SidecarSets", "ordering the start of containers", "finding the PodUnavailableBudget", "asking the PodUnavailableBudget", "telling the pod of its PodProbeMarkers", "taking liveness probes out of the pod"
	const back = "finding out where the pod comes back"
	for name, tc := range map[string]struct {
		gates      []featuregate.Feature
		want       []string
		operations []string
		conditions int // of the readiness gate
	}{
		"no gate":                   {nil, []string{readiness, sidecars, barriers, back, ask}, nil, 2},
		"budgets of deletions":      {[]featuregate.Feature{deletes}, []string{readiness, sidecars, barriers, annotation, back, ask}, []string{protection.Delete, protection.Evict}, 2},
		"budgets of updates":        {[]featuregate.Feature{updates}, []string{readiness, sidecars, barriers, annotation, back, ask}, []string{protection.Update, protection.Resize}, 2},
		"a readiness gate for all":  {[]featuregate.Feature{all}, []string{readiness, sidecars, barriers, back, ask}, nil, 0},
		"liveness probes":           {[]featuregate.Feature{features.EnhancedLivenessProbe}, []string{readiness, sidecars, barriers, back, liveness, ask}, nil, 2},
		"probes of serverless pods": {[]featuregate.Feature{features.EnablePodProbeMarkerOnServerless}, []string{readiness, sidecars, barriers, back, probes, ask}, nil, 2},
		"all":                       {[]featuregate.Feature{deletes, updates, all}, []string{readiness, sidecars, barriers, annotation, back, ask}, []string{protection.Delete, protection.Evict, protection.Update, protection.Resize}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := ListEnabled(func(f featuregate.Feature) bool { return slices.Contains(tc.gates, f) }, Needs{})
			if err != nil {
				t.Fatal(err)
			}
			var got, operations []string
			for _, s := range steps.Mutating {
				got = append(got, s.Name)
			}
			for _, s := range steps.Validating {
				got = append(got, s.Name)
			}
			for _, m := range steps.StoredMatches() {
				operations = append(operations, m.Operations...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.operations, operations); diff != "" {
				t.Error(diff)
			}
			if n := len(steps.CreatedMatches()[0].Conditions); n != tc.conditions {
				t.Errorf("the readiness gate has %d conditions", n)
			}
		})
	}
}

// Containers that a SidecarSet brings have barriers as those of the pod, and count where it is asked how many there are.
func TestContainersOfSidecarSetsStartInOrderToo(t *testing.T) {
	env := func(value string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnv, Value: value}}
	}
	e := rules.Engine(t, "")
	for name, tc := range map[string]struct {
		annotation   string
		sidecar, own []corev1.EnvVar
		want         string // the containers with the keys of their barriers, or the error
	}{
		"no order":                           {"", nil, nil, "logs main"},
		"the order of the spec":              {"Ordered", nil, nil, "logs:p_0 main:p_-1"},
		"the sidecar has a priority":         {"", env("7"), nil, "logs:p_7 main:p_0"},
		"the pod has a priority":             {"", nil, env("-7"), "logs:p_0 main:p_-7"},
		"both have the same":                 {"", env("7"), env("7"), "logs main"},
		"the annotation names the sidecar":   {`{"logs": 2, "main": 1}`, nil, nil, "logs:p_-2 main:p_-1"},
		"the priority of the sidecar is bad": {"", env("high"), nil, `ordering the start of containers: container logs: env KRUISE_CONTAINER_PRIORITY: strconv.ParseInt: parsing "high": invalid syntax (launchpriority.order.faulty)`},
		"that of the pod is bad":             {"", nil, env("1.5"), `ordering the start of containers: container main: env KRUISE_CONTAINER_PRIORITY: strconv.ParseInt: parsing "1.5": invalid syntax (launchpriority.order.faulty)`},
	} {
		t.Run(name, func(t *testing.T) {
			set := &kruise.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs"}}
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			set.Spec.Containers = []kruise.SidecarContainer{{Container: corev1.Container{Name: "logs", Env: tc.sidecar}, PodInjectPolicy: kruise.BeforeAppContainerType}}
			c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(set, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).Build()
			steps, err := ListEnabled(func(featuregate.Feature) bool { return false }, Needs{Cached: c, Live: c, Engine: e, Namespace: "kruise-system"})
			if err != nil {
				t.Fatal(err)
			}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Labels: map[string]string{"app": "web"}}}
			p.Annotations = map[string]string{kruise.ContainerLaunchPriorityKey: tc.annotation}
			p.Spec.Containers = []corev1.Container{{Name: "main", Env: tc.own}}
			raw, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			mutator, _ := pod.New(c, steps, 0)
			answer := mutator.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: "shop", Object: runtime.RawExtension{Raw: raw},
			}})
			if !answer.Allowed {
				if answer.Result.Code != http.StatusInternalServerError || answer.Result.Message != tc.want {
					t.Errorf("%d %s, want %s", answer.Result.Code, answer.Result.Message, tc.want)
				}
				return
			}
			raw, err = review.ApplyPatches(raw, answer)
			if err != nil {
				t.Fatal(err)
			}
			got := &corev1.Pod{}
			if err := json.Unmarshal(raw, got); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range got.Spec.Containers {
				for _, e := range c.Env {
					if e.Name == kruise.ContainerLaunchBarrierEnv {
						c.Name += ":" + e.ValueFrom.ConfigMapKeyRef.Key
					}
				}
				names = append(names, c.Name)
			}
			if text := strings.Join(names, " "); text != tc.want {
				t.Errorf("the pod has %s, want %s", text, tc.want)
			}
		})
	}
}
