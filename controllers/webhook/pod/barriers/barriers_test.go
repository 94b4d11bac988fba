// SPDX-License-Identifier: Apache-2.0

package barriers

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/test/rules"
)

func TestBarriersOfNewPods(t *testing.T) {
	e := rules.Engine(t, "")
	for name, tc := range map[string]struct {
		annotation string
		env        map[string]string // of containers and init containers
		want       string            // the keys of the containers a, b and c, or the error
	}{
		"no order":                          {"", nil, ""},
		"the order of the spec":             {"Ordered", nil, "p_0 p_-1 p_-2"},
		"by the env":                        {"", map[string]string{"b": "1", "c": "-2147483647"}, "p_0 p_1 p_-2147483647"},
		"by the env, all the same":          {"", map[string]string{"a": "0", "b": "0"}, ""},
		"by the env, in 64 bits":            {"", map[string]string{"a": "9223372036854775806", "b": "9223372036854775807", "c": "-9223372036854775808"}, "p_9223372036854775806 p_9223372036854775807 p_-9223372036854775808"},
		"by the env, in the last digit":     {"", map[string]string{"a": "9007199254740993", "b": "9007199254740992", "c": "9007199254740993"}, "p_9007199254740993 p_9007199254740992 p_9007199254740993"},
		"by the env of an init container":   {"", map[string]string{"init": "1"}, ""},
		"an init container has no barrier":  {"", map[string]string{"init": "high", "b": "1"}, "p_0 p_1 p_0"},
		"by the places of the annotation":   {"\n{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}\n", nil, "p_-1 p_-2 p_-3"},
		"an env that is no number":          {"", map[string]string{"b": "high"}, `container b: env KRUISE_CONTAINER_PRIORITY: strconv.ParseInt: parsing "high": invalid syntax (launchpriority.order.faulty)`},
		"an env that is too large":          {"", map[string]string{"b": "9223372036854775808"}, "value out of range"},
		"an annotation that is no JSON":     {"{a: 1}", nil, "want Ordered, or a JSON object of containers and whole numbers"},
		"an annotation with fractions":      {`{"a": 1.5}`, nil, "want Ordered, or a JSON object of containers and whole numbers"},
		"an annotation with another name":   {`{"x": 1}`, nil, `the pod has no container "x"`},
		"an annotation that says nothing":   {"{}", nil, ""},
		"another value of the annotation":   {"ordered", nil, ""},
		"the annotation goes before faults": {"Ordered", map[string]string{"b": "high"}, "p_0 p_-1 p_-2"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{}
			p.GenerateName, p.Annotations = "web-", map[string]string{kruise.ContainerLaunchPriorityKey: tc.annotation}
			for _, container := range []string{"init", "a", "b", "c"} {
				c := corev1.Container{Name: container}
				if value, ok := tc.env[container]; ok {
					c.Env = []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnv, Value: value}}
				}
				if container == "init" {
					p.Spec.InitContainers = append(p.Spec.InitContainers, c)
					continue
				}
				p.Spec.Containers = append(p.Spec.Containers, c)
			}
			changed, err := New(e, false).Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "shop"})
			if err != nil {
				if tc.want == "" || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
				return
			}
			var keys []string
			for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
				for _, env := range c.Env {
					if env.Name == kruise.ContainerLaunchBarrierEnv {
						keys = append(keys, env.ValueFrom.ConfigMapKeyRef.Key)
						if got := env.ValueFrom.ConfigMapKeyRef.Name; got != p.Name+"-barrier" {
							t.Errorf("the barrier is in %s", got)
						}
					}
				}
			}
			if got := strings.Join(keys, " "); got != tc.want || changed != (got != "") {
				t.Errorf("changed is %t, the keys are %q, want %q", changed, got, tc.want)
			}
			if changed && (len(p.Name) != len("web-")+5 || !strings.HasPrefix(p.Name, "web-")) {
				t.Errorf("the name is %q", p.Name)
			}
		})
	}
}

// There is nothing that it could start before, so that it does not matter what it declares.
func TestAPodWithOneContainerIsLeftAlone(t *testing.T) {
	e := rules.Engine(t, "")
	for name, tc := range map[string]struct{ annotation, env string }{
		"the order of the spec":           {"Ordered", ""},
		"a priority":                      {"", "1"},
		"an env that is no number":        {"", "high"},
		"an annotation that is no JSON":   {"{main: 1}", ""},
		"an annotation with another name": {`{"x": 1}`, "high"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{}
			p.GenerateName, p.Annotations = "web-", map[string]string{kruise.ContainerLaunchPriorityKey: tc.annotation}
			p.Spec.Containers = []corev1.Container{{Name: "main"}}
			if tc.env != "" {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnv, Value: tc.env}}
			}
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Env: []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnv, Value: "2"}}}}
			before := p.DeepCopy()
			if changed, err := New(e, true).Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "shop"}); err != nil || changed || cmp.Diff(before, p) != "" {
				t.Errorf("changed is %t, %v %s", changed, err, cmp.Diff(before, p))
			}
		})
	}
}
