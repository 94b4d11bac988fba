// SPDX-License-Identifier: Apache-2.0

package barriers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/test/rules"
)

func TestBarriersOfNewPods(t *testing.T) {
	e := rules.Engine(t, "")
	for name, tc := range map[string]struct {
		annotation string
		env        map[string]string // of containers
		want       string            // the keys of the containers a, b and c, or the error
	}{
		"no order":                          {"", nil, ""},
		"the order of the spec":             {"Ordered", nil, "p_0 p_-1 p_-2"},
		"by the env":                        {"", map[string]string{"b": "1", "c": "-2147483647"}, "p_0 p_1 p_-2147483647"},
		"by the env, all the same":          {"", map[string]string{"a": "0", "b": "0"}, ""},
		"by the places of the annotation":   {"\n{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}\n", nil, "p_-1 p_-2 p_-3"},
		"an env that is no number":          {"", map[string]string{"b": "high"}, `container b: env KRUISE_CONTAINER_PRIORITY: strconv.ParseInt: parsing "high": invalid syntax (launchpriority.order.faulty)`},
		"an env that is too large":          {"", map[string]string{"b": "2147483648"}, "value out of range"},
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
			for _, container := range []string{"a", "b", "c"} {
				c := corev1.Container{Name: container}
				if value, ok := tc.env[container]; ok {
					c.Env = []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnv, Value: value}}
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
			for _, c := range p.Spec.Containers {
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
