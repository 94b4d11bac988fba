// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// serving is an available pod of one container, changed by edits.
func serving(edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-a", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "docker.io/library/web:1", ImageID: "docker.io/library/web@sha256:a1"}},
		},
	}
	for _, e := range edits {
		e(p)
	}
	return p
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func TestReady(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*corev1.Pod)
		want bool
	}{
		"running and ready":                      {func(*corev1.Pod) {}, true},
		"not ready":                              {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"without the condition":                  {func(p *corev1.Pod) { p.Status.Conditions = nil }, false},
		"pending":                                {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, false},
		"finished, with the condition still on":  {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false},
		"terminating":                            {func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"labelled as unavailable, with no value": {func(p *corev1.Pod) { p.Labels["unavailable-pod.kruise.io/drain"] = "" }, false},
		"labelled with something like it":        {func(p *corev1.Pod) { p.Labels["unavailable-pod.kruise.iox"] = "true" }, true},
	} {
		if got := IsReady(serving(tc.edit)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestConsistent(t *testing.T) {
	image := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Image = name }
	}
	id := func(id string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = id }
	}
	half := annotated(kruise.InPlaceUpdateStateKey, `{"revision":"web-2","lastContainerStatuses":{"main":{"imageID":"docker.io/library/web@sha256:a1"}}}`)
	sidecar := func(set, state string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations[kruise.SidecarSetHashKey] = set
			p.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = state
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "log", Image: "log:2"})
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "log", Image: "log:1", ImageID: "log@sha256:b1"})
		}
	}
	const set, before = `{"logs":{"hash":"h","sidecarList":["log"]}}`, `{"logs":{"revision":"r","lastContainerStatuses":{"log":{"imageID":"log@sha256:b1"}}}}`
	for name, tc := range map[string]struct {
		edits []func(*corev1.Pod)
		want  bool
	}{
		"never updated":                              {nil, true},
		"in the middle of an update in place":        {[]func(*corev1.Pod){image("web:2"), half}, false},
		"in its grace period":                        {[]func(*corev1.Pod){annotated(kruise.InPlaceUpdateGraceKey, "{}")}, false},
		"a state that is not valid JSON":             {[]func(*corev1.Pod){annotated(kruise.InPlaceUpdateStateKey, "{")}, false},
		"updated, with another image running":        {[]func(*corev1.Pod){image("web:2"), half, id("web@sha256:a2")}, true},
		"by digest, and running it":                  {[]func(*corev1.Pod){image("web@sha256:a1")}, true},
		"by tag and digest, and running it":          {[]func(*corev1.Pod){image("web:1@sha256:a1")}, true},
		"by digest, and running another":             {[]func(*corev1.Pod){image("web@sha256:a2")}, false},
		"by digest, in the words of docker":          {[]func(*corev1.Pod){image("web@sha256:a1"), id("docker-pullable://web@sha256:a1")}, true},
		"by digest, told as the digest alone":        {[]func(*corev1.Pod){image("web@sha256:a1"), id("sha256:a1")}, true},
		"by digest, of which another is the end":     {[]func(*corev1.Pod){image("web@6:a1")}, false},
		"by digest, and no status":                   {[]func(*corev1.Pod){image("web@sha256:a1"), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }}, false},
		"all by digest, so that no state counts":     {[]func(*corev1.Pod){image("web@sha256:a1"), half}, true},
		"one by digest, one in an update":            {[]func(*corev1.Pod){image("web@sha256:a1"), sidecar(set, before)}, false},
		"a sidecar in an update":                     {[]func(*corev1.Pod){sidecar(set, before)}, false},
		"a sidecar that was never updated":           {[]func(*corev1.Pod){sidecar(set, `{}`)}, true},
		"a sidecar of a set without a list":          {[]func(*corev1.Pod){sidecar(`{"logs":"h"}`, before)}, true},
		"sidecars whose state is not valid JSON":     {[]func(*corev1.Pod){sidecar(set, `[`)}, false},
		"sidecars in an unreadable form":             {[]func(*corev1.Pod){sidecar(`[`, before)}, true},
		"a sidecar with its new image":               {[]func(*corev1.Pod){sidecar(set, before), func(p *corev1.Pod) { p.Status.ContainerStatuses[1].ImageID = "log@sha256:b2" }}, true},
		"a set, and a container without a status":    {[]func(*corev1.Pod){sidecar(set, `{}`), func(p *corev1.Pod) { p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1] }}, false},
		"a set, and the state names a null":          {[]func(*corev1.Pod){sidecar(set, `{"logs":null}`)}, true},
		"no set at all, and one container not there": {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }}, true},
	} {
		p := serving(tc.edits...)
		why := InconsistentReason(p)
		if got := why == ""; got != tc.want {
			t.Errorf("%s: %q", name, why)
		}
		if PodState(p).Consistent != tc.want || IsAvailable(p) != tc.want {
			t.Errorf("%s: state %+v, available %t", name, PodState(p), IsAvailable(p))
		}
	}
}

func TestNoProtect(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "T": true, "1": true, "false": false, "yes": false, "": false} {
		if got := NoProtect(serving(annotated("pub.kruise.io/no-protect", value))); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
	if NoProtect(&corev1.Pod{}) {
		t.Error("a pod without the annotation")
	}
}

func TestBudget(t *testing.T) {
	for want, edits := range map[string][]func(*corev1.Pod){
		"":    nil,
		"new": {annotated("pub.kruise.io/related-pub", "new"), annotated("kruise.io/related-pub", "old")},
		"old": {annotated("kruise.io/related-pub", "old")},
	} {
		if got := BudgetName(serving(edits...)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
