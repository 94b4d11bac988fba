// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// updating is a pod in the middle of an update of its one container from image
// web:1, which ran as container c1 of image i1, to web:2.
func updating(edit func(*corev1.Pod), state func(*kruise.InPlaceUpdateState)) *corev1.Pod {
	s := &kruise.InPlaceUpdateState{
		Revision: "web-2", LastContainerStatuses: map[string]kruise.InPlaceUpdateContainerStatus{"main": {ImageID: "i1", ContainerID: "c1"}},
	}
	if state != nil {
		state(s)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-a", Generation: 2, Annotations: map[string]string{kruise.InPlaceUpdateStateKey: string(raw)}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:2"}}},
		Status: corev1.PodStatus{ObservedGeneration: 2, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", Image: "docker.io/library/web:1", ImageID: "i1", ContainerID: "c1",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}},
	}
	if edit != nil {
		edit(p)
	}
	return p
}

func TestIncomplete(t *testing.T) {
	status := func(image, imageID, containerID string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			st := &p.Status.ContainerStatuses[0]
			st.Image, st.ImageID, st.ContainerID = image, imageID, containerID
		}
	}
	both := func(edits ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, e := range edits {
				e(p)
			}
		}
	}
	ended := func(policy corev1.RestartPolicy, code int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.RestartPolicy = policy
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
		}
	}
	waiting := func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = corev1.ContainerState{} }
	stale := func(p *corev1.Pod) { p.Status.ObservedGeneration = 1 }
	old := func(p *corev1.Pod) { p.Status.ObservedGeneration, p.Generation = 0, 0 }
	spec := func(image string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
	}
	onlyMeta := func(s *kruise.InPlaceUpdateState) {
		s.LastContainerStatuses["main"] = kruise.InPlaceUpdateContainerStatus{ContainerID: "c1"}
	}
	openKruise := func(s *kruise.InPlaceUpdateState) {
		s.LastContainerStatuses["main"] = kruise.InPlaceUpdateContainerStatus{ImageID: "i1"}
	}
	neverStarted := func(s *kruise.InPlaceUpdateState) {
		s.LastContainerStatuses["main"] = kruise.InPlaceUpdateContainerStatus{}
	}
	tests := map[string]struct {
		pod  *corev1.Pod
		done bool
	}{
		"a pod that was never updated is complete":                         {&corev1.Pod{}, true},
		"the old image still runs":                                         {updating(nil, nil), false},
		"the new image runs":                                               {updating(status("web:2", "i2", "c2"), nil), true},
		"another imageID proves it, whatever the name":                     {updating(status("sha256:abc", "i2", "c2"), nil), true},
		"but not if the kubelet tells of the pod before the change":        {updating(both(status("web:2", "i2", "c2"), stale), nil), false},
		"an old kubelet does not say which pod it tells of":                {updating(both(status("web:2", "i2", "c2"), old), nil), true},
		"no imageID proves nothing":                                        {updating(both(status("web:1", "", ""), waiting), nil), false},
		"the image of the same name as before runs: the change was undone": {updating(both(spec("web:1"), status("docker.io/library/web:1", "i1", "c1")), nil), true},
		"but not if the kubelet has not seen that yet":                     {updating(both(spec("web:1"), status("web:1", "i1", "c1"), stale), nil), false},
		"two tags of one digest, and the container is a new one":           {updating(status("web:1", "i1", "c2"), nil), true},
		"two tags of one digest, and the container is still the old one":   {updating(status("web:1", "i1", "c1"), nil), false},
		"two tags of one digest, and the new container does not run":       {updating(both(status("web:1", "i1", "c2"), waiting), nil), false},
		"two tags of one digest, and the runtime tells the new name":       {updating(status("docker.io/library/web:2", "i1", "c1"), nil), true},
		"an image by digest is recognized by its imageID": {updating(both(spec("web@sha256:aa"), status("web:1", "docker.io/library/web@sha256:aa", "c1")), func(s *kruise.InPlaceUpdateState) {
			s.LastContainerStatuses["main"] = kruise.InPlaceUpdateContainerStatus{ImageID: "docker.io/library/web@sha256:aa", ContainerID: "c1"}
		}), true},
		"the old container has ended and is not started again":                 {updating(ended(corev1.RestartPolicyNever, 1), nil), true},
		"the old container has ended and is started again":                     {updating(ended(corev1.RestartPolicyOnFailure, 1), nil), false},
		"the new container has ended and is not started again":                 {updating(both(status("web:2", "i2", "c2"), ended(corev1.RestartPolicyOnFailure, 0)), nil), true},
		"it has ended, but the kubelet has not seen the change":                {updating(both(ended(corev1.RestartPolicyNever, 0), stale), nil), false},
		"only an env changes, and the container has ended":                     {updating(both(spec("web:1"), ended(corev1.RestartPolicyNever, 0)), onlyMeta), true},
		"the container has no status yet":                                      {updating(func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, nil), false},
		"only an env changes, and the container is the old one":                {updating(both(spec("web:1")), onlyMeta), false},
		"only an env changes, and the container is a new one":                  {updating(both(spec("web:1"), status("web:1", "i1", "c2")), onlyMeta), true},
		"OpenKruise recorded it, and the old image runs":                       {updating(nil, openKruise), false},
		"OpenKruise recorded it, and the container restarted with the old one": {updating(status("web:1", "i1", "c2"), openKruise), false},
		"OpenKruise recorded it, and the new image runs":                       {updating(status("web:2", "i2", "c2"), openKruise), true},
		"OpenKruise recorded it, and one digest has the new name":              {updating(status("web:2", "i1", "c1"), openKruise), true},
		"it had never started, and still has not":                              {updating(both(status("web:2x", "", ""), waiting), neverStarted), false},
		"it had never started, and does now":                                   {updating(status("web:2", "i2", "c2"), neverStarted), true},
		"containers wait for their batch":                                      {updating(status("web:2", "i2", "c2"), func(s *kruise.InPlaceUpdateState) { s.NextContainerImages = map[string]string{"side": "side:2"} }), false},
		"resources wait for their batch": {updating(status("web:2", "i2", "c2"), func(s *kruise.InPlaceUpdateState) {
			s.NextContainerResources = map[string]corev1.ResourceRequirements{"side": {}}
		}), false},
		"metadata waits for its batch": {updating(status("web:2", "i2", "c2"), func(s *kruise.InPlaceUpdateState) {
			s.NextContainerRefMetadata = map[string]kruise.ContainerRefMetadata{"side": {}}
		}), false},
		"the grace period runs":                   {updating(func(p *corev1.Pod) { p.Annotations[kruise.InPlaceUpdateGraceKey] = "{}" }, nil), false},
		"the grace period of an old release runs": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kruise.InPlaceUpdateGraceLegacyKey: "{}"}}}, false},
		"the record cannot be read":               {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kruise.InPlaceUpdateStateKey: "{"}}}, false},
		"the record of an old release is read":    {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kruise.InPlaceUpdateStateLegacyKey: `{"lastContainerStatuses":{"main":{"imageID":"i1"}}}`}}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if why := IncompleteReason(tc.pod); (why == "") != tc.done {
				t.Errorf("Incomplete says %q, want done %v", why, tc.done)
			}
		})
	}
}

func TestFullImageNames(t *testing.T) {
	for image, want := range map[string]string{
		"nginx": "docker.io/library/nginx:latest", "nginx:1": "docker.io/library/nginx:1", "me/nginx": "docker.io/me/nginx:latest",
		"docker.io/nginx:1": "docker.io/library/nginx:1", "index.docker.io/me/nginx:1": "docker.io/me/nginx:1",
		"localhost/nginx": "localhost/nginx:latest", "reg:5000/nginx": "reg:5000/nginx:latest", "reg:5000/a/b:2": "reg:5000/a/b:2",
		"ghcr.io/a/b": "ghcr.io/a/b:latest",
	} {
		if got := normalizeImage(image); got != want {
			t.Errorf("full(%q) = %q, want %q", image, got, want)
		}
	}
	if sameImage("", &corev1.ContainerStatus{}) {
		t.Error("no image is the same as none")
	}
}
