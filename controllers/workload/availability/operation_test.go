// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"encoding/json"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/engine/decision/protection"
)

func TestOperation(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return out
	}
	sized := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi"), Limits: list("cpu", "2", "memory", "2Gi")}
	}
	request := func(name, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			r := &p.Spec.Containers[0].Resources
			r.Requests = maps.Clone(r.Requests)
			r.Requests[corev1.ResourceName(name)] = resource.MustParse(value)
		}
	}
	policy := func(name, restart string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceName(name), RestartPolicy: corev1.ResourceResizeRestartPolicy(restart)}}
		}
	}
	both := func(edits ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, e := range edits {
				e(p)
			}
		}
	}
	label := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels[key] = "true" }
	}
	sidecar := func(cpu, restart string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: list("cpu", cpu)},
				ResizePolicy: []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.ResourceResizeRestartPolicy(restart)}}}}
		}
	}
	whole := func(cpu string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", cpu)} }
	}
	const drain = "unavailable-pod.kruise.io/drain"
	for name, tc := range map[string]struct {
		before, after func(*corev1.Pod)
		want          string
	}{
		"nothing":                         {sized, sized, ""},
		"the same amount in other words":  {sized, both(sized, request("cpu", "1000m")), ""},
		"another label":                   {sized, both(sized, label("tier")), ""},
		"a status":                        {sized, both(sized, func(p *corev1.Pod) { p.Status.Message = "x" }), ""},
		"a label of unavailability":       {sized, both(sized, label(drain)), protection.Update},
		"one that was there":              {both(sized, label(drain)), both(sized, label(drain)), ""},
		"one more of them":                {both(sized, label(drain)), both(sized, label(drain), label(drain+"2")), protection.Update},
		"one less of them":                {both(sized, label(drain)), sized, ""},
		"an image":                        {sized, both(sized, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }), protection.Update},
		"something else of the spec":      {sized, both(sized, func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To(int64(1)) }), protection.Update},
		"cpu":                             {sized, both(sized, request("cpu", "1500m")), protection.Resize},
		"memory":                          {sized, both(sized, request("memory", "1500Mi")), protection.Resize},
		"cpu and the label":               {sized, both(sized, request("cpu", "1500m"), label(drain)), protection.Update},
		"cpu and an image":                {sized, both(sized, request("cpu", "1500m"), func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }), protection.Update},
		"cpu that wants no restart":       {both(sized, policy("cpu", "NotRequired")), both(sized, policy("cpu", "NotRequired"), request("cpu", "1500m")), protection.Resize},
		"cpu that does not say":           {both(sized, policy("cpu", "")), both(sized, policy("cpu", ""), request("cpu", "1500m")), protection.Resize},
		"cpu that wants a restart":        {both(sized, policy("cpu", "RestartContainer")), both(sized, policy("cpu", "RestartContainer"), request("cpu", "1500m")), protection.Update},
		"cpu, and memory wants a restart": {both(sized, policy("memory", "RestartContainer")), both(sized, policy("memory", "RestartContainer"), request("cpu", "1500m")), protection.Resize},
		"another resource":                {both(sized, request("example.com/gpu", "1")), both(sized, request("example.com/gpu", "2")), protection.Update},
		"a resource that is new":          {sized, both(sized, request("ephemeral-storage", "1Gi")), protection.Update},
		"a limit that goes":               {sized, both(sized, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = list("memory", "2Gi") }), protection.Resize},
		"a class of service": {sized, both(sized, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = p.Spec.Containers[0].Resources.Limits
		}), protection.Update},
		"cpu of a static pod":                   {both(sized, annotated("kubernetes.io/config.source", "file")), both(sized, request("cpu", "1500m")), protection.Update},
		"cpu of a pod of api":                   {both(sized, annotated("kubernetes.io/config.source", "api")), both(sized, request("cpu", "1500m")), protection.Resize},
		"cpu of a mirror":                       {both(sized, annotated("kubernetes.io/config.mirror", "x")), both(sized, request("cpu", "1500m")), protection.Update},
		"a container goes":                      {both(sized, func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b"}) }), sized, protection.Update},
		"cpu of a sidecar":                      {both(sized, sidecar("1", "")), both(sized, sidecar("2", "")), protection.Resize},
		"cpu of a sidecar that wants a restart": {both(sized, sidecar("1", "RestartContainer")), both(sized, sidecar("2", "RestartContainer")), protection.Update},
		"cpu of the pod":                        {both(sized, whole("3")), both(sized, whole("4")), protection.Resize},
		"cpu of the pod, and a container wants a restart for it": {both(sized, whole("3"), policy("cpu", "RestartContainer")), both(sized, whole("4"), policy("cpu", "RestartContainer")), protection.Update},
		"a claim of a resource":                                  {sized, both(sized, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}} }), protection.Update},
	} {
		before, after := serving(tc.before), serving(tc.after)
		if got := ClassifyChange(before, after); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		if before.Spec.Containers[0].Name != "main" {
			t.Errorf("%s: the pod was written to", name)
		}
	}
}

// Whatever pods look like, there is an answer, and none to a change that is none.
func FuzzPods(f *testing.F) {
	seed, err := json.Marshal(serving(annotated("apps.kruise.io/inplace-update-state", `{"lastContainerStatuses":{"main":{}}}`), annotated("kruise.io/sidecarset-hash", `{"a":{"sidecarList":["x"]}}`)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, seed)
	f.Add([]byte(`{"spec":{"containers":[{"resources":{"requests":{"cpu":"1"}}}]}}`), []byte(`{"spec":{"containers":[{"resources":{"requests":{"cpu":"2"}}}]}}`))
	f.Add([]byte(`{"spec":{"containers":[{}]}}`), []byte(`{"metadata":{"labels":{"unavailable-pod.kruise.io/":""}}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		before, after := &corev1.Pod{}, &corev1.Pod{}
		if json.Unmarshal(a, before) != nil || json.Unmarshal(b, after) != nil {
			return
		}
		if got := ClassifyChange(before, before.DeepCopy()); got != "" {
			t.Errorf("a pod that does not change: %s", got)
		}
		_ = ClassifyChange(before, after)
		for _, p := range []*corev1.Pod{before, after} {
			if s := PodState(p); IsAvailable(p) != (s.Ready && s.Consistent) {
				t.Errorf("available contradicts %+v", s)
			}
			_ = BudgetName(p)
		}
	})
}
