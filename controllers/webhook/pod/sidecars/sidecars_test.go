// SPDX-License-Identifier: Apache-2.0

package sidecars

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	"github.com/regatta-sh/regatta/controllers/sidecarset/marks"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// setOf is a SidecarSet for pods of the app web, after a change.
func setOf(name, image string, change func(*kruise.SidecarSet)) *kruise.SidecarSet {
	set := &kruise.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Containers = []kruise.SidecarContainer{{Container: corev1.Container{Name: name, Image: image}, PodInjectPolicy: kruise.BeforeAppContainerType}}
	if change != nil {
		change(set)
	}
	return set
}

// webPod is a pod of the app web, without a name as ReplicaSets create them.
func webPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1", Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")},
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
		}}}},
	}
}

func revisionOf(t *testing.T, set *kruise.SidecarSet, version string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	data, err := history.Encode(&set.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: set.Name + "-" + version, Labels: map[string]string{
			kruise.SidecarSetNameKey: set.Name, kruise.SidecarSetCustomVersionKey: version,
		}},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
}

// created is what comes of a pod: the images of its containers in order, or the error.
func created(t *testing.T, module string, p *corev1.Pod, objects ...client.Object) (string, error) {
	t.Helper()
	e := rules.Engine(t, module)
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "shop", "tier": "gold"}}})
	c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(objects...).Build()
	step := New(Options{Cached: c, Live: c, Engine: e, Namespace: "kruise-system", Now: func() time.Time { return time.Unix(1_700_000_000, 0) }, Draw: func() float64 { return 0.5 }})
	changed, err := step.Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "shop"})
	var images []string
	for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		images = append(images, container.Image)
	}
	if err == nil && changed != (len(images) > 1) {
		t.Errorf("changed is %t, and the images are %v", changed, images)
	}
	return strings.Join(images, " "), err
}

func TestPodsGetWhatSidecarSetsSay(t *testing.T) {
	old := setOf("logs", "logs:1", nil)
	named := func(policy kruise.SidecarSetInjectRevisionPolicy, change func(*kruise.SidecarSet)) *kruise.SidecarSet {
		return setOf("logs", "logs:2", func(set *kruise.SidecarSet) {
			set.Spec.InjectionStrategy.Revision = &kruise.SidecarSetInjectRevision{CustomVersion: ptr.To("v1"), Policy: policy}
			if change != nil {
				change(set)
			}
		})
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		rules   string
		want    string
	}{
		"no SidecarSet": {nil, "", "web:1"},
		"one":           {[]client.Object{setOf("logs", "logs:1", nil)}, "", "logs:1 web:1"},
		"one for another namespace": {[]client.Object{setOf("logs", "logs:1", func(s *kruise.SidecarSet) {
			s.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "bank"}}
		})}, "", "web:1"},
		"one for namespaces with a label": {[]client.Object{setOf("logs", "logs:1", func(s *kruise.SidecarSet) {
			s.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
		})}, "", "logs:1 web:1"},
		"an empty selector selects nothing": {[]client.Object{setOf("logs", "logs:1", func(s *kruise.SidecarSet) { s.Spec.Selector = &metav1.LabelSelector{} })}, "", "web:1"},
		"one behind the others": {[]client.Object{setOf("logs", "logs:1", func(s *kruise.SidecarSet) {
			s.Spec.Containers[0].PodInjectPolicy = kruise.AfterAppContainerType
		})}, "", "web:1 logs:1"},
		"a canary instead of its base": {[]client.Object{setOf("logs", "logs:1", nil), setOf("canary", "logs:2", func(s *kruise.SidecarSet) {
			s.Annotations = map[string]string{kruise.SidecarSetCanaryKey: "true", kruise.SidecarSetBaseKey: "logs"}
		})}, "", "logs:2 web:1"},
		"a revision by its version": {[]client.Object{named("Always", nil), revisionOf(t, old, "v1", 1)}, "", "logs:1 web:1"},
		"a revision that is gone":   {[]client.Object{named("Always", nil)}, "", "logs:2 web:1"},
		"a share of the pods, and this one is in it": {[]client.Object{named("Partial", func(s *kruise.SidecarSet) {
			s.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromString("60%"))
		}), revisionOf(t, old, "v1", 1)}, "", "logs:1 web:1"},
		"a share of the pods, and this one is not": {[]client.Object{named("Partial", func(s *kruise.SidecarSet) {
			s.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromString("40%"))
		}), revisionOf(t, old, "v1", 1)}, "", "logs:2 web:1"},
		"a rule leaves one out": {[]client.Object{setOf("logs", "logs:1", nil), setOf("mesh", "mesh:1", nil)},
			"package extend.injection.x\nskip contains {\"set\": \"logs\", \"reason\": \"R\", \"message\": \"m\"}\n", "mesh:1 web:1"},
		"a rule adds one that does not select the pod": {[]client.Object{setOf("audit", "audit:1", func(s *kruise.SidecarSet) {
			s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bank"}}
		})}, "package extend.injection.x\nadd contains {\"set\": \"audit\", \"reason\": \"R\", \"message\": \"m\"} if input.pod.namespaceLabels.tier == \"gold\"\n", "audit:1 web:1"},
		"an init container that stays running": {[]client.Object{setOf("logs", "logs:1", func(s *kruise.SidecarSet) {
			s.Spec.InitContainers, s.Spec.Containers = s.Spec.Containers, nil
			s.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		})}, "", "logs:1 web:1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := created(t, tc.rules, webPod(), tc.objects...); err != nil || got != tc.want {
				t.Errorf("%v, %q, want %q", err, got, tc.want)
			}
		})
	}
}

func TestResourcesAreComputed(t *testing.T) {
	set := func(limit, request, pattern string) *kruise.SidecarSet {
		return setOf("logs", "logs:1", func(s *kruise.SidecarSet) {
			s.Spec.Containers[0].ResourcesPolicy = &kruise.ResourcesPolicy{
				TargetContainersMode: kruise.ResourcesPolicyModeSum, TargetContainersNameRegex: pattern,
				ResourcesExpr: kruise.ResourcesExpr{
					Limits:   &kruise.ResourceExprLimits{CPU: limit, Memory: "memory*50%"},
					Requests: &kruise.ResourceExprRequests{CPU: request},
				},
			}
		})
	}
	p := webPod()
	if _, err := created(t, "", p, set("cpu*50%", "max(cpu*10%, 50m)", ".*")); err != nil {
		t.Fatal(err)
	}
	got := p.Spec.Containers[0].Resources
	if got.Limits.Cpu().String() != "1" || got.Limits.Memory().String() != "512Mi" || got.Requests.Cpu().String() != "100m" || len(got.Requests) != 1 {
		t.Errorf("%+v", got)
	}
	unlimited := webPod()
	delete(unlimited.Spec.Containers[0].Resources.Limits, "cpu")
	if _, err := created(t, "", unlimited, set("cpu*50%", "", ".*")); err != nil {
		t.Fatal(err)
	}
	if _, limited := unlimited.Spec.Containers[0].Resources.Limits["cpu"]; limited {
		t.Error("a limit is set though the pod has none")
	}
	for want, faulty := range map[string]*kruise.SidecarSet{
		`limits.cpu "cpu/0": it divides by zero`:       set("cpu/0", "", ".*"),
		`requests.cpu "cpu-9": the result is negative`: set("cpu", "cpu-9", ".*"),
		`no containers match the regex pattern "^db$"`: set("cpu", "cpu", "^db$"),
	} {
		if _, err := created(t, "", webPod(), faulty); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// While no policy decides, the pod is refused, unless the SidecarSet says that it may start.
func TestWithoutADecisionThePodIsRefused(t *testing.T) {
	broken := "package override.injection\n\nsidecars := to_number(input.pod.namespace)\n"
	if _, err := created(t, broken, webPod(), setOf("logs", "logs:1", nil)); err == nil || !strings.Contains(err.Error(), "No policy decided what SidecarSet logs gives the pod") {
		t.Errorf("%v", err)
	}
	got, err := created(t, broken, webPod(), setOf("logs", "logs:1", func(s *kruise.SidecarSet) {
		s.Annotations = map[string]string{kruise.SidecarSetInjectionFailurePolicyKey: "Ignore"}
	}))
	if err != nil || got != "web:1" {
		t.Errorf("%v, %q", err, got)
	}
}

// The controller has not seen the spec yet, so that the status names the revision before. A pod is marked with the revision of the
// containers that it is given.
func TestPodsNameTheRevisionOfTheirContainers(t *testing.T) {
	old := setOf("logs", "logs:1", nil)
	renewed := func(change func(*kruise.SidecarSet)) *kruise.SidecarSet {
		return setOf("logs", "logs:2", func(set *kruise.SidecarSet) {
			set.Generation, set.Status = 2, kruise.SidecarSetStatus{ObservedGeneration: 1, LatestRevision: "logs-v1"}
			if change != nil {
				change(set)
			}
		})
	}
	data, err := history.Encode(&renewed(nil).Spec)
	if err != nil {
		t.Fatal(err)
	}
	taken := revisionOf(t, old, "x", 1)
	taken.Name = "logs-" + revision.Hash(data, 0)
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"the status is of this spec": {[]client.Object{renewed(func(s *kruise.SidecarSet) { s.Status.ObservedGeneration = 2 })}, "logs-v1"},
		"there is none yet":          {[]client.Object{renewed(nil), revisionOf(t, old, "v1", 1)}, "logs-" + revision.Hash(data, 0)},
		"there is one of that name":  {[]client.Object{renewed(nil), taken}, "logs-" + revision.Hash(data, 1)},
		"the spec is an earlier one": {[]client.Object{renewed(nil), revisionOf(t, old, "v1", 2), revisionOf(t, renewed(nil), "v0", 1)}, "logs-v0"},
		"there have been collisions": {[]client.Object{renewed(func(s *kruise.SidecarSet) { s.Status.CollisionCount = ptr.To[int32](3) })}, "logs-" + revision.Hash(data, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			p := webPod()
			if _, err := created(t, "", p, tc.objects...); err != nil {
				t.Fatal(err)
			}
			entries, err := marks.Read(p, kruise.SidecarSetHashKey)
			if err != nil || entries["logs"].ControllerRevision != tc.want {
				t.Errorf("%v, the pod names revision %q, want %q", err, entries["logs"].ControllerRevision, tc.want)
			}
		})
	}
}
