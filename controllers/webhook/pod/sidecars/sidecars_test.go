// SPDX-License-Identifier: Apache-2.0

package sidecars

import (
	"context"
	"encoding/json"
	"errors"
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
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
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
	data, err := history.EncodeSpec(&set.Spec)
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
	return createdWhile(t, interceptor.Funcs{}, module, p, objects...)
}

// createdWhile is the same while requests are answered in another way.
func createdWhile(t *testing.T, on interceptor.Funcs, module string, p *corev1.Pod, objects ...client.Object) (string, error) {
	t.Helper()
	e := rules.Engine(t, module)
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "shop", "tier": "gold"}}})
	c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(objects...).WithInterceptorFuncs(on).Build()
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
	newer := revisionOf(t, setOf("logs", "logs:1.1", nil), "v1", 2)
	newer.Name = "logs-a" // lists have it first
	within := func(name string, s *metav1.LabelSelector) *kruise.SidecarSet {
		return setOf(name, name+":1", func(set *kruise.SidecarSet) { set.Spec.NamespaceSelector = s })
	}
	byName := func(operator metav1.LabelSelectorOperator, names ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: operator, Values: names}}}
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
		"a revision by its version":                    {[]client.Object{named("Always", nil), revisionOf(t, old, "v1", 1)}, "", "logs:1 web:1"},
		"the newest of several revisions of a version": {[]client.Object{named("Always", nil), revisionOf(t, old, "v1", 1), newer}, "", "logs:1.1 web:1"},
		"a revision by its name": {[]client.Object{named("Always", func(s *kruise.SidecarSet) {
			s.Spec.InjectionStrategy.Revision = &kruise.SidecarSetInjectRevision{RevisionName: ptr.To("logs-v1")}
		}), revisionOf(t, old, "v1", 1)}, "", "logs:1 web:1"},
		"a name that no revision has": {[]client.Object{named("Always", func(s *kruise.SidecarSet) {
			s.Spec.InjectionStrategy.Revision = &kruise.SidecarSetInjectRevision{RevisionName: ptr.To("logs-v2")}
		}), revisionOf(t, old, "v1", 1)}, "", "logs:2 web:1"},
		"the update is paused, and this pod is not in the share": {[]client.Object{named("Partial", func(s *kruise.SidecarSet) {
			s.Spec.UpdateStrategy.Paused, s.Spec.UpdateStrategy.Partition = true, ptr.To(intstr.FromString("40%"))
		}), revisionOf(t, old, "v1", 1)}, "", "logs:1 web:1"},
		"some of the pods, and the update selects others": {[]client.Object{named("Partial", func(s *kruise.SidecarSet) {
			s.Spec.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		}), revisionOf(t, old, "v1", 1)}, "", "logs:1 web:1"},
		"some of the pods, and the update selects this one": {[]client.Object{named("Partial", func(s *kruise.SidecarSet) {
			s.Spec.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		}), revisionOf(t, old, "v1", 1)}, "", "logs:2 web:1"},
		"some of the pods, and the partition is a number": {[]client.Object{named("Partial", func(s *kruise.SidecarSet) {
			s.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromInt32(5))
		}), revisionOf(t, old, "v1", 1)}, "", "logs:2 web:1"},
		"some of the pods, and there is no partition":           {[]client.Object{named("Partial", nil), revisionOf(t, old, "v1", 1)}, "", "logs:2 web:1"},
		"one that names the namespace among others comes first": {[]client.Object{within("a", nil), within("b", byName(metav1.LabelSelectorOpIn, "bank", "shop"))}, "", "b:1 a:1 web:1"},
		"one that names the namespace by a label comes first": {[]client.Object{within("a", nil), within("b", &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: "shop"},
		})}, "", "b:1 a:1 web:1"},
		"one that names other namespaces, to leave them out, does not": {[]client.Object{within("a", nil), within("b", byName(metav1.LabelSelectorOpNotIn, "bank"))}, "", "a:1 b:1 web:1"},
		"a revision that is gone":                                      {[]client.Object{named("Always", nil)}, "", "logs:2 web:1"},
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
	const (
		all = `targetContainersNameRegex: ".*", resourcesExpr: {limits: {cpu: cpu, memory: memory}, requests: {cpu: cpu, memory: memory}}`
		// two has one container with more of some, and another one with more of the rest.
		two = `containers: [{name: main, resources: {limits: {cpu: 2, memory: 512Mi}, requests: {cpu: 1, memory: 100Mi}}}, ` +
			`{name: cache, resources: {limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: 300m, memory: 200Mi}}}]`
		less    = `containers: [{name: main, resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}}, {name: cache, resources: {limits: {memory: 512Mi}}}]`
		limited = `targetContainersMode: sum, targetContainersNameRegex: ".*", resourcesExpr: {limits: {cpu: cpu}}`
	)
	// brings is a SidecarSet of an init container that stays running, and of a container.
	brings := func(change func(*kruise.SidecarSet)) *kruise.SidecarSet {
		return setOf("agent", "agent:1", func(s *kruise.SidecarSet) {
			s.Spec.InitContainers = []kruise.SidecarContainer{{Container: corev1.Container{Name: "mesh", Image: "mesh:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}}
			if change != nil {
				change(s)
			}
		})
	}
	const brought = `initContainers: [{name: mesh, restartPolicy: Always, resources: {limits: {cpu: 32}}}], ` +
		`containers: [{name: main, resources: {limits: {cpu: 2}}}, {name: agent, resources: {limits: {cpu: 4}}}, {name: agent-1, resources: {limits: {cpu: 8}}}, {name: agent-2, resources: {limits: {cpu: 16}}}]`
	for name, tc := range map[string]struct {
		pod    string // that of webPod if it is empty
		policy string
		change func(*kruise.SidecarSet)
		other  *kruise.SidecarSet
		want   string // the resources of the container, or the error
	}{
		"of the one container": {policy: `targetContainersMode: sum, targetContainersNameRegex: ".*", resourcesExpr: {limits: {cpu: cpu*50%, memory: memory*50%}, requests: {cpu: "max(cpu*10%, 50m)"}}`,
			want: `{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m"}}`},
		"the sum of several": {pod: two, policy: "targetContainersMode: sum, " + all,
			want: `{"limits":{"cpu":"2500m","memory":"1536Mi"},"requests":{"cpu":"1300m","memory":"300Mi"}}`},
		"the largest of several": {pod: two, policy: "targetContainersMode: max, " + all,
			want: `{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"1","memory":"200Mi"}}`},
		"the sum where one has no limit and no requests": {pod: less, policy: "targetContainersMode: sum, " + all,
			want: `{"limits":{"memory":"1536Mi"},"requests":{"cpu":"1","memory":"0"}}`},
		"the largest where one has no limit and no requests": {pod: less, policy: "targetContainersMode: max, " + all,
			want: `{"limits":{"memory":"1Gi"},"requests":{"cpu":"1","memory":"0"}}`},
		"a pattern that is a part of a name": {pod: two, policy: `targetContainersMode: sum, targetContainersNameRegex: ai, resourcesExpr: {limits: {cpu: cpu}}`,
			want: `{"limits":{"cpu":"2"}}`},
		"of init containers that stay running, and of no other init containers": {
			pod: `initContainers: [{name: setup, resources: {limits: {cpu: 8}}}, {name: proxy, restartPolicy: Always, resources: {limits: {cpu: 1}}}], containers: [{name: main, resources: {limits: {cpu: 2}}}]`, policy: limited,
			want: `{"limits":{"cpu":"3"}}`},
		"not of containers of another SidecarSet, which the pod has already": {pod: brought, policy: limited, other: brings(nil),
			want: `{"limits":{"cpu":"26"}}`},
		"nor of a hot pair, nor of one with the name that it has in the SidecarSet": {pod: brought, policy: limited,
			other: brings(func(s *kruise.SidecarSet) {
				s.Spec.Containers[0].UpgradeStrategy = kruise.SidecarContainerUpgradeStrategy{UpgradeType: kruise.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "empty:1"}
			}), want: `{"limits":{"cpu":"2"}}`},
		"but of such containers where the pod is not given that SidecarSet": {pod: brought, policy: limited,
			other: brings(func(s *kruise.SidecarSet) { s.Spec.InjectionStrategy.Paused = true }), want: `{"limits":{"cpu":"62"}}`},
		"plain numbers are cores and bytes": {policy: `targetContainersMode: sum, targetContainersNameRegex: ".*", resourcesExpr: {limits: {cpu: "3", memory: "100"}}`,
			want: `{"limits":{"cpu":"3","memory":"100"}}`},
		"parts of a thousandth of a core, and of a byte, are left out": {policy: `targetContainersMode: sum, targetContainersNameRegex: ".*", resourcesExpr: {limits: {cpu: cpu/3, memory: memory/3}}`,
			want: `{"limits":{"cpu":"666m","memory":"357913941"}}`},
		"all resources that the container has are replaced": {policy: limited, change: func(s *kruise.SidecarSet) {
			s.Spec.Containers[0].Resources = corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("9"), "memory": resource.MustParse("9Gi"), "ephemeral-storage": resource.MustParse("9Gi")},
				Requests: corev1.ResourceList{"cpu": resource.MustParse("9")}, Claims: []corev1.ResourceClaim{{Name: "gpu"}},
			}
		}, want: `{"limits":{"cpu":"2"}}`},
		"of an init container that stays running": {policy: limited, change: func(s *kruise.SidecarSet) {
			s.Spec.InitContainers, s.Spec.Containers = s.Spec.Containers, nil
			s.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}, want: `{"limits":{"cpu":"2"}}`},
		"a limit that divides by zero": {policy: `targetContainersMode: sum, targetContainersNameRegex: ".*", resourcesExpr: {limits: {cpu: cpu/0}}`,
			want: `limits.cpu "cpu/0": it divides by zero`},
		"a request that is negative": {policy: `targetContainersMode: sum, targetContainersNameRegex: ".*", resourcesExpr: {limits: {cpu: cpu}, requests: {cpu: cpu-9}}`,
			want: `requests.cpu "cpu-9": the result is negative`},
		"a pattern that no container matches": {policy: `targetContainersMode: sum, targetContainersNameRegex: ^db$, resourcesExpr: {limits: {cpu: cpu}}`,
			want: `no containers match the regex pattern "^db$"`},
		"a pattern that only containers of SidecarSets and plain init containers match": {
			pod:    `initContainers: [{name: log, resources: {limits: {cpu: 1}}}], containers: [{name: main}, {name: logs, resources: {limits: {cpu: 1}}}]`,
			policy: `targetContainersMode: sum, targetContainersNameRegex: log, resourcesExpr: {limits: {cpu: cpu}}`,
			want:   `no containers match the regex pattern "log"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := webPod()
			if tc.pod != "" {
				p.Spec = corev1.PodSpec{}
				if err := yaml.UnmarshalStrict([]byte("{"+tc.pod+"}"), &p.Spec); err != nil {
					t.Fatal(err)
				}
			}
			objects := []client.Object{setOf("logs", "logs:1", func(s *kruise.SidecarSet) {
				policy := &kruise.ResourcesPolicy{}
				if err := yaml.UnmarshalStrict([]byte("{"+tc.policy+"}"), policy); err != nil {
					t.Fatal(err)
				}
				s.Spec.Containers[0].ResourcesPolicy = policy
				if tc.change != nil {
					tc.change(s)
				}
			})}
			if tc.other != nil {
				objects = append(objects, tc.other)
			}
			if _, err := created(t, "", p, objects...); err != nil {
				if strings.HasPrefix(tc.want, "{") || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %s", err, tc.want)
				}
				return
			}
			all := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
			at := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == "logs" })
			if at < 0 {
				t.Fatal("the pod has no container logs")
			}
			if got, err := json.Marshal(all[at].Resources); err != nil || string(got) != tc.want {
				t.Errorf("%v, %s, want %s", err, got, tc.want)
			}
		})
	}
}

// Which revision a pod is to get cannot be known, and the latest is not what the SidecarSet says.
func TestAPodIsRefusedWhereRevisionsCannotBeListed(t *testing.T) {
	broken := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*appsv1.ControllerRevisionList); ok {
			return errors.New("broken")
		}
		return c.List(ctx, list, opts...)
	}}
	set := setOf("logs", "logs:2", func(set *kruise.SidecarSet) {
		set.Spec.InjectionStrategy.Revision = &kruise.SidecarSetInjectRevision{CustomVersion: ptr.To("v1"), Policy: kruise.AlwaysSidecarSetInjectRevisionPolicy}
	})
	p := webPod()
	_, err := createdWhile(t, broken, "", p, set, revisionOf(t, setOf("logs", "logs:1", nil), "v1", 1))
	if err == nil || err.Error() != "finding the revision of SidecarSet logs: listing revisions: broken" || len(p.Spec.Containers) != 1 {
		t.Errorf("%v, and the pod has %d containers", err, len(p.Spec.Containers))
	}
	if got, err := createdWhile(t, broken, "", webPod(), setOf("logs", "logs:2", nil)); err != nil || got != "logs:2 web:1" {
		t.Errorf("where no revision is named: %v, %q", err, got)
	}
}

// While no policy decides, the pod is refused, unless the SidecarSet says that it may start.
func TestWithoutADecisionThePodIsRefused(t *testing.T) {
	broken := "package override.injection\n\nsidecars := to_number(input.pod.namespace)\n"
	if _, err := created(t, broken, webPod(), setOf("logs", "logs:1", nil)); err == nil || !strings.Contains(err.Error(), "No policy decided what SidecarSet logs gives the pod") {
		t.Errorf("%v", err)
	}
	// The failure policy of a SidecarSet speaks for that one alone. A rule that fails may have added another, without which the
	// pod must not start.
	const head = "package extend.injection.own\n\n"
	for name, tc := range map[string]struct{ rules, want, refused string }{
		"an override fails":        {broken, "web:1", "No policy decided which SidecarSets the pod is given"},
		"a rule that adds fails":   {head + "add contains {\"set\": \"mandatory\", \"reason\": \"R\", \"message\": \"m\"} if to_number(input.pod.namespace) > 0\n", "web:1", "No policy decided which SidecarSets the pod is given"},
		"a rule that leaves fails": {head + "skip contains {\"set\": \"logs\", \"reason\": \"R\", \"message\": \"m\"} if to_number(input.pod.namespace) > 0\n", "logs:1 web:1", ""},
	} {
		got, err := created(t, tc.rules, webPod(), setOf("logs", "logs:1", func(s *kruise.SidecarSet) {
			s.Annotations = map[string]string{kruise.SidecarSetInjectionFailurePolicyKey: "Ignore"}
		}))
		if got != tc.want || (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: %v, %q", name, err, got)
		}
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
	data, err := history.EncodeSpec(&renewed(nil).Spec)
	if err != nil {
		t.Fatal(err)
	}
	taken := revisionOf(t, old, "x", 1)
	taken.Name = "logs-" + revision.HashData(data, 0)
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"the status is of this spec": {[]client.Object{renewed(func(s *kruise.SidecarSet) { s.Status.ObservedGeneration = 2 })}, "logs-v1"},
		"there is none yet":          {[]client.Object{renewed(nil), revisionOf(t, old, "v1", 1)}, "logs-" + revision.HashData(data, 0)},
		"there is one of that name":  {[]client.Object{renewed(nil), taken}, "logs-" + revision.HashData(data, 1)},
		"the spec is an earlier one": {[]client.Object{renewed(nil), revisionOf(t, old, "v1", 2), revisionOf(t, renewed(nil), "v0", 1)}, "logs-v0"},
		"there have been collisions": {[]client.Object{renewed(func(s *kruise.SidecarSet) { s.Status.CollisionCount = ptr.To[int32](3) })}, "logs-" + revision.HashData(data, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			p := webPod()
			if _, err := created(t, "", p, tc.objects...); err != nil {
				t.Fatal(err)
			}
			entries, err := podmeta.Read(p, kruise.SidecarSetHashKey)
			if err != nil || entries["logs"].ControllerRevision != tc.want {
				t.Errorf("%v, the pod names revision %q, want %q", err, entries["logs"].ControllerRevision, tc.want)
			}
		})
	}
}
