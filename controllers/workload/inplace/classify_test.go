// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/regatta-sh/regatta/controllers/workload/revision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

func revisionOf(name string, template *corev1.PodTemplateSpec) (*appsv1.ControllerRevision, error) {
	raw, err := revision.EncodeTemplate(template)
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: raw}}, err
}

func classify(from, to *corev1.PodTemplateSpec) (Difference, error) {
	a, errA := revisionOf("web-1", from)
	b, errB := revisionOf("web-2", to)
	if err := errors.Join(errA, errB); err != nil {
		return Difference{}, err
	}
	return NewClassifier().CompareRevisions(a, b)
}

// twoContainers is a template with a main and a side container.
func twoContainers() *corev1.PodTemplateSpec {
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: name + ":1",
			Resources: corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
				Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "ephemeral-storage": resource.MustParse("1Gi")},
			},
		}
	}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "init:1"}},
			Containers:     []corev1.Container{container("main"), container("side")},
		},
	}
}

func between(t testing.TB, from, to *corev1.PodTemplateSpec) Difference {
	t.Helper()
	d, err := classify(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestClassesOfDifferences(t *testing.T) {
	image := func(op, path, container string) points.TemplateChange {
		return points.TemplateChange{Class: points.ChangeImage, Op: op, Path: path, Container: container}
	}
	meta := func(op, path string) points.TemplateChange {
		return points.TemplateChange{Class: points.ChangeMetadata, Op: op, Path: path}
	}
	other := func(op, path string) points.TemplateChange {
		return points.TemplateChange{Class: points.ChangeOther, Op: op, Path: path}
	}
	resources := func(path, container string) points.TemplateChange {
		return points.TemplateChange{Class: points.ChangeResources, Op: "replace", Path: path, Container: container}
	}
	tests := map[string]struct {
		edit func(*corev1.PodTemplateSpec)
		want []points.TemplateChange
	}{
		"nothing differs": {func(*corev1.PodTemplateSpec) {}, nil},
		"an image": {
			func(p *corev1.PodTemplateSpec) { p.Spec.Containers[1].Image = "side:2" },
			[]points.TemplateChange{image("replace", "/spec/containers/1/image", "side")},
		},
		"an image of an init container is no image that can be changed": {
			func(p *corev1.PodTemplateSpec) { p.Spec.InitContainers[0].Image = "init:2" },
			[]points.TemplateChange{other("replace", "/spec/initContainers/0/image")},
		},
		"an image that goes away is no image": {
			func(p *corev1.PodTemplateSpec) { p.Spec.Containers[1].Image = "" },
			[]points.TemplateChange{other("remove", "/spec/containers/1/image")},
		},
		"a label that is added": {
			func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "gold" },
			[]points.TemplateChange{meta("add", "/metadata/labels/tier")},
		},
		"a label that is replaced": {
			func(p *corev1.PodTemplateSpec) { p.Labels["app"] = "store" },
			[]points.TemplateChange{meta("replace", "/metadata/labels/app")},
		},
		"the last label that is removed": {
			func(p *corev1.PodTemplateSpec) { p.Labels = nil },
			[]points.TemplateChange{meta("remove", "/metadata/labels")},
		},
		"the first annotation changes the whole map, and is metadata": {
			func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"a/b": "c"} },
			[]points.TemplateChange{meta("add", "/metadata/annotations")},
		},
		"cpu and memory": {
			func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
				p.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse("2Gi")
				p.Spec.Containers[1].Resources.Requests["cpu"] = resource.MustParse("600m")
			},
			[]points.TemplateChange{
				resources("/spec/containers/0/resources/limits/cpu", "main"), resources("/spec/containers/0/resources/limits/memory", "main"),
				resources("/spec/containers/1/resources/requests/cpu", "side"),
			},
		},
		"the same quantity in other words is no difference": {
			func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1000m")
			}, nil,
		},
		"another resource is not one that can be changed": {
			func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("2Gi")
			},
			[]points.TemplateChange{other("replace", "/spec/containers/0/resources/requests/ephemeral-storage")},
		},
		"a limit that is added cannot be": {
			func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("1Gi")
			},
			[]points.TemplateChange{other("add", "/spec/containers/0/resources/requests/memory")},
		},
		"a limit that is removed cannot be": {
			func(p *corev1.PodTemplateSpec) { delete(p.Spec.Containers[0].Resources.Limits, "cpu") },
			[]points.TemplateChange{other("remove", "/spec/containers/0/resources/limits/cpu")},
		},
		"an environment variable": {
			func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}} },
			[]points.TemplateChange{other("add", "/spec/containers/0/env")},
		},
		"the node selector": {
			func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"a": "b"} },
			[]points.TemplateChange{other("add", "/spec/nodeSelector")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			to := twoContainers()
			tc.edit(to)
			d := between(t, twoContainers(), to)
			if diff := cmp.Diff(sorted(tc.want), sorted(d.Changes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever a container is swapped with, added to or removed from, it is never
// taken for a change of images.
func TestOtherContainersAreNeverAChangeInPlace(t *testing.T) {
	tests := map[string]func(*corev1.PodTemplateSpec){
		"two containers change places": func(p *corev1.PodTemplateSpec) {
			c := p.Spec.Containers
			c[0], c[1] = c[1], c[0]
		},
		"a container is added": func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "new", Image: "new:1"})
		},
		"a container is added in front": func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append([]corev1.Container{{Name: "new", Image: "new:1"}}, p.Spec.Containers...)
		},
		"a container is removed": func(p *corev1.PodTemplateSpec) { p.Spec.Containers = p.Spec.Containers[1:] },
		"a container has another name": func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Name, p.Spec.Containers[0].Image = "renamed", "renamed:1"
		},
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			to := twoContainers()
			edit(to)
			for _, c := range between(t, twoContainers(), to).Changes {
				if c.Class == points.ChangeOther {
					return
				}
			}
			t.Error("no difference keeps this from being done in place")
		})
	}
}

func TestRevisionsThatCannotBeReadAreErrors(t *testing.T) {
	good, err := revisionOf("web-1", twoContainers())
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"no data": "", "no JSON": "{", "no template": "{}", "a template that is no object": `{"spec":{"template":7}}`,
		"containers that are no list": `{"spec":{"template":{"spec":{"containers":7}}}}`,
	} {
		bad := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-2"}, Data: runtime.RawExtension{Raw: []byte(raw)}}
		if _, err := NewClassifier().CompareRevisions(good, bad); err == nil {
			t.Errorf("%s: no error for the new revision", name)
		}
		if _, err := NewClassifier().CompareRevisions(bad, good); err == nil {
			t.Errorf("%s: no error for the old revision", name)
		}
	}
}

func TestEnvRefresh(t *testing.T) {
	reads := func(path string) corev1.EnvVar {
		return corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	template := func(labels, annotations map[string]string, env ...corev1.EnvVar) *corev1.PodTemplateSpec {
		p := twoContainers()
		p.Labels, p.Annotations = labels, annotations
		p.Spec.Containers[0].Env = env
		return p
	}
	tests := map[string]struct {
		from, to *corev1.PodTemplateSpec
		want     map[string]Metadata
	}{
		"an env that reads a label which is replaced": {
			template(map[string]string{"a": "1"}, nil, reads("metadata.labels['a']")),
			template(map[string]string{"a": "2"}, nil, reads("metadata.labels['a']")),
			map[string]Metadata{"main": {Labels: map[string]string{"a": "2"}}},
		},
		"an env that reads an annotation which is added to others": {
			template(nil, map[string]string{"b": "1"}, reads("metadata.annotations['a']")),
			template(nil, map[string]string{"b": "1", "a": "2"}, reads("metadata.annotations['a']")),
			map[string]Metadata{"main": {Annotations: map[string]string{"a": "2"}}},
		},
		"a key with a slash and a tilde": {
			template(map[string]string{"a/b~1~c": "1"}, nil, reads("metadata.labels['a/b~1~c']")),
			template(map[string]string{"a/b~1~c": "2"}, nil, reads("metadata.labels['a/b~1~c']")),
			map[string]Metadata{"main": {Labels: map[string]string{"a/b~1~c": "2"}}},
		},
		"the first label refreshes nothing": {
			template(nil, nil, reads("metadata.labels['a']")),
			template(map[string]string{"a": "2"}, nil, reads("metadata.labels['a']")),
			map[string]Metadata{},
		},
		"a label that is removed refreshes nothing": {
			template(map[string]string{"a": "1", "b": "1"}, nil, reads("metadata.labels['a']")),
			template(map[string]string{"b": "1"}, nil, reads("metadata.labels['a']")),
			map[string]Metadata{},
		},
		"a label of the name of an annotation that is read refreshes nothing": {
			template(map[string]string{"a": "1"}, nil, reads("metadata.annotations['a']")),
			template(map[string]string{"a": "2"}, nil, reads("metadata.annotations['a']")),
			map[string]Metadata{},
		},
		"an env that reads another field": {
			template(map[string]string{"a": "1"}, nil, reads("metadata.name")),
			template(map[string]string{"a": "2"}, nil, reads("metadata.name")),
			map[string]Metadata{},
		},
		"an env that reads all labels reads no key": {
			template(map[string]string{"a": "1"}, nil, reads("metadata.labels")),
			template(map[string]string{"a": "2"}, nil, reads("metadata.labels")),
			map[string]Metadata{},
		},
		"an env with a value of its own": {
			template(map[string]string{"a": "1"}, nil, corev1.EnvVar{Name: "X", Value: "metadata.labels['a']"}),
			template(map[string]string{"a": "2"}, nil, corev1.EnvVar{Name: "X", Value: "metadata.labels['a']"}),
			map[string]Metadata{},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, between(t, tc.from, tc.to).EnvRefresh()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func sorted(changes []points.TemplateChange) []points.TemplateChange {
	out := slices.Clone(changes)
	slices.SortFunc(out, func(a, b points.TemplateChange) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func TestATemplateAsksForNewPodsWhenItsTimeIsLater(t *testing.T) {
	const early, late, lateElsewhere = "2026-11-28T10:00:00Z", "2026-11-28T11:00:00Z", "2026-11-28T12:00:00+01:00"
	for name, tc := range map[string]struct {
		old, new string // "" for no annotation
		want     bool
	}{
		"the first restart":                 {"", late, true},
		"a later restart":                   {early, late, true},
		"the same restart":                  {late, late, false},
		"the same time in another zone":     {late, lateElsewhere, false},
		"back to an earlier restart":        {late, early, false},
		"back to before the first restart":  {late, "", false},
		"no restart":                        {"", "", false},
		"a value that is no time":           {early, "soon", false},
		"a time after a value that is none": {"soon", early, true},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := twoContainers(), twoContainers()
			for template, at := range map[*corev1.PodTemplateSpec]string{from: tc.old, to: tc.new} {
				if at != "" {
					template.Annotations = map[string]string{RestartedAtKey: at}
				}
			}
			if got := between(t, from, to).RequestsRestart(); got != tc.want {
				t.Errorf("it asks for new pods: %t, want %t", got, tc.want)
			}
		})
	}
}
