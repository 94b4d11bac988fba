// SPDX-License-Identifier: Apache-2.0

package barriers

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// started is a pod of the containers a, b and c, after an init container.
func started(annotation string, priorities map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "web-", Annotations: map[string]string{kruise.ContainerLaunchPriorityKey: annotation}}}
	p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1"}}
	for _, name := range []string{"a", "b", "c"} {
		c := corev1.Container{Name: name, Image: name + ":1"}
		if value, ok := priorities[name]; ok {
			c.Env = []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnv, Value: value}}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

func owned(group, kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: "web", UID: "u", Controller: ptr.To(true)}}
	}
}

// order says how containers start: those of init, a bar, the others, with a star where one waits for a barrier.
func order(p *corev1.Pod) string {
	names := func(list []corev1.Container) string {
		var out []string
		for _, c := range list {
			name := c.Name
			if c.RestartPolicy != nil {
				name += ":" + string(*c.RestartPolicy)
			}
			if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == kruise.ContainerLaunchBarrierEnv }) {
				name += "*"
			}
			out = append(out, name)
		}
		return strings.Join(out, " ")
	}
	return names(p.Spec.InitContainers) + " | " + names(p.Spec.Containers)
}

// insists is a policy that would make init containers in any case.
const insists = `package override.launchpriority
import data.launchpriority
default order := {"priorities": {}, "refuse": [{"reason": "NoFacts", "message": "None."}]}
order := object.union(launchpriority.order, {"native": true})
`

func TestNativeSidecarsInsteadOfBarriers(t *testing.T) {
	const native, barred = "init a:Always b:Always | c", "init | a* b* c*"
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	e := rules.Engine(t, "")
	insistent := rules.Engine(t, insists)
	for name, tc := range map[string]struct {
		annotation string
		priorities map[string]string
		change     func(*corev1.Pod)
		off        bool
		engine     *engine.Engine
		want       string
	}{
		"the order of the spec":                       {"Ordered", nil, nil, false, e, native},
		"the gate is off":                             {"Ordered", nil, nil, true, e, barred},
		"the gate is off and the policy says native":  {"Ordered", nil, nil, true, insistent, barred},
		"the highest number first":                    {"", map[string]string{"b": "1", "c": "5"}, nil, false, e, "init c:Always b:Always | a"},
		"several in the last group":                   {"", map[string]string{"b": "1"}, nil, false, e, "init b:Always | a c"},
		"several in the first group":                  {"", map[string]string{"c": "-1"}, nil, false, e, native},
		"the places of the annotation":                {`{"c": 1, "a": 2}`, nil, nil, false, e, "init c:Always a:Always | b"},
		"no order":                                    {"", nil, nil, false, e, "init | a b c"},
		"a ReplicaSet":                                {"Ordered", nil, owned("apps/v1", "ReplicaSet"), false, e, native},
		"a CloneSet, which updates in place":          {"Ordered", nil, owned("apps.kruise.io/v1beta1", "CloneSet"), false, e, barred},
		"a CloneSet, and the policy says native":      {"Ordered", nil, owned("apps.kruise.io/v1alpha1", "CloneSet"), false, insistent, barred},
		"an owner of another group":                   {"Ordered", nil, owned("example.com/v1", "Game"), false, e, barred},
		"an owner of another group as a policy wants": {"Ordered", nil, owned("example.com/v1", "Game"), false, insistent, native},
		"a pod that ends":                             {"Ordered", nil, func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, false, e, barred},
		"a readiness probe":                           {"Ordered", nil, func(p *corev1.Pod) { p.Spec.Containers[1].ReadinessProbe = probe }, false, e, barred},
		"a readiness probe of the last":               {"Ordered", nil, func(p *corev1.Pod) { p.Spec.Containers[2].ReadinessProbe = probe }, false, e, native},
		"a startup probe":                             {"Ordered", nil, func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe = probe }, false, e, native},
		"a startup probe beside another":              {"", map[string]string{"c": "-1"}, func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe = probe }, false, e, barred},
		"a port with a name":                          {"Ordered", nil, func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http"}} }, false, e, barred},
		"a port of the host":                          {"Ordered", nil, func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }, false, e, barred},
		"a port without a name":                       {"Ordered", nil, func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}} }, false, e, native},
		"a container of a SidecarSet": {"Ordered", nil, func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: kruise.SidecarInjectedEnv, Value: "true"}}
		}, false, insistent, barred},
		"a container of a SidecarSet in the last group": {"Ordered", nil, func(p *corev1.Pod) {
			p.Spec.Containers[2].Env = []corev1.EnvVar{{Name: kruise.SidecarInjectedEnv, Value: "true"}}
		}, false, e, native},
		"a container with a restart policy": {"Ordered", nil, func(p *corev1.Pod) {
			p.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
		}, false, insistent, "init | a:Never* b* c*"},
		"a liveness probe of the node agent": {"Ordered", nil, func(p *corev1.Pod) {
			p.Annotations[kruise.UsingEnhancedLivenessKey] = "true"
			p.Spec.Containers[0].LivenessProbe = probe
		}, false, insistent, barred},
		"a copy of a pod with barriers": {"Ordered", nil, func(p *corev1.Pod) {
			for i := range p.Spec.Containers {
				p.Spec.Containers[i].Env = []corev1.EnvVar{{Name: kruise.ContainerLaunchBarrierEnv, Value: "old"}}
			}
		}, false, e, native},
	} {
		t.Run(name, func(t *testing.T) {
			p := started(tc.annotation, tc.priorities)
			if tc.change != nil {
				tc.change(p)
			}
			before := p.DeepCopy()
			changed, err := New(tc.engine, !tc.off).Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "shop"})
			if got := order(p); err != nil || got != tc.want || changed != (got != order(before)) {
				t.Fatalf("changed is %t, the order %q, want %q; %v", changed, got, tc.want, err)
			}
			if named := p.Name != ""; named != strings.Contains(tc.want, "*") {
				t.Errorf("the name is %q", p.Name)
			}
			// The webhook may see the pod again, and a user may copy it.
			once := p.DeepCopy()
			if _, err := New(tc.engine, !tc.off).Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "shop"}); err != nil || cmp.Diff(once, p) != "" {
				t.Errorf("another time: %v %s", err, cmp.Diff(once, p))
			}
			if _, err := New(e, false).Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "shop"}); err != nil || strings.Contains(order(p), "Always") {
				t.Errorf("a copy while the gate is off: %v, %s", err, order(p))
			}
		})
	}
}

// What a container may have is accepted where it becomes an init container.
func TestTheAPIServerTakesPodsWithNativeSidecars(t *testing.T) {
	env := apiserver.Start(t)
	api, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	exec := func() *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, TerminationGracePeriodSeconds: ptr.To(int64(3))}
	}
	hook := func() *corev1.LifecycleHandler {
		return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
	}
	all := map[string]func(*corev1.Container){
		"probes": func(c *corev1.Container) {
			c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = exec(), exec(), exec()
			c.LivenessProbe.SuccessThreshold, c.ReadinessProbe.TerminationGracePeriodSeconds = 1, nil
		},
		"hooks": func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PostStart: hook(), PreStop: hook()} },
		"resources": func(c *corev1.Container) {
			c.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}}
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.NotRequired}, {ResourceName: "memory", RestartPolicy: corev1.RestartContainer}}
		},
		"ports": func(c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80, HostPort: 80}}
		},
		"volumes": func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}} },
		"env": func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{
				{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
				{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "c", Resource: "limits.cpu"}}},
			}
			c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
		},
		"a terminal": func(c *corev1.Container) { c.TTY, c.Stdin, c.StdinOnce = true, true, true },
	}
	all["everything"] = func(c *corev1.Container) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if name != "everything" {
				all[name](c)
			}
		}
	}
	step := New(rules.Engine(t, insists), true)
	for name, change := range all {
		t.Run(name, func(t *testing.T) {
			p := started("Ordered", nil)
			p.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			change(&p.Spec.Containers[0])
			change(&p.Spec.Containers[1])
			if len(p.Spec.Containers[1].Ports) > 0 {
				p.Spec.Containers[1].Ports[0].HostPort = 81
			}
			if err := api.Create(t.Context(), p.DeepCopy(), client.DryRunAll); err != nil {
				t.Fatalf("as it was declared: %v", err)
			}
			if _, err := step.Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "default"}); err != nil {
				t.Fatal(err)
			}
			if err := api.Create(t.Context(), p, client.DryRunAll); err != nil || order(p) != "init a:Always b:Always | c" {
				t.Errorf("%s: %v", order(p), err)
			}
		})
	}
}
