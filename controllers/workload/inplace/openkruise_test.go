// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
)

// openKruiseImage is the imageID that the pods had before their updates.
const openKruiseImage = "docker.io/library/nginx@sha256:8a68dd618f62326964afb4f025fe91f2ce77c0cda4998976b4b7b5ee7917dcf0"

// openKruisePods are pods as OpenKruise left them in a cluster.
func openKruisePods(t *testing.T) map[string]*corev1.Pod {
	t.Helper()
	raw, err := os.ReadFile("testdata/openkruise.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pods []*corev1.Pod
	if err := yaml.UnmarshalStrict(raw, &pods); err != nil {
		t.Fatal(err)
	}
	out := map[string]*corev1.Pod{}
	for _, p := range pods {
		out[p.Name] = p
	}
	return out
}

func TestPodsThatOpenKruiseUpdated(t *testing.T) {
	mainStatus := func(p *corev1.Pod) *corev1.ContainerStatus {
		st := statusOf(p, "main")
		if st == nil {
			t.Fatalf("pod %s has no container main", p.Name)
		}
		return st
	}
	oneDigest := func(p *corev1.Pod) { // both tags have it, and the runtime tells the old one
		st := mainStatus(p)
		st.Image, st.ImageID = "docker.io/library/nginx:1.25", openKruiseImage
	}
	inFlight := func(p *corev1.Pod) {
		c := FindCondition(p, kruise.InPlaceUpdateReady)
		c.Status, c.Reason = corev1.ConditionFalse, kruise.StartInPlaceUpdateReason
	}
	noAgent := func(p *corev1.Pod) { delete(p.Annotations, kruise.RuntimeContainerMetaKey) }
	oldContainer := func(p *corev1.Pod) {
		st := mainStatus(p)
		st.State.Running.StartedAt = metav1.NewTime(st.State.Running.StartedAt.Add(-time.Minute))
	}
	otherContainer := func(p *corev1.Pod) { mainStatus(p).ContainerID = "containerd://other" }
	crashed := func(p *corev1.Pod) { mainStatus(p).State = corev1.ContainerState{} }
	unseen := func(p *corev1.Pod) { p.Status.ObservedGeneration-- }
	onlyEnv := func(p *corev1.Pod) {
		s, err := DecodeState(p)
		if err != nil {
			t.Fatal(err)
		}
		s.LastContainerStatuses, s.UpdateImages, s.UpdateEnvFromMetadata = nil, false, true
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		p.Annotations[kruise.InPlaceUpdateStateKey] = string(raw)
	}
	otherColor := func(p *corev1.Pod) { p.Annotations["shop.example/color"] = "red" }
	type edits []func(*corev1.Pod)
	for name, tc := range map[string]struct {
		pod   string
		edits edits
		done  bool
	}{
		"never updated":                         {"web-ddcj4", nil, true},
		"updated to another image":              {"web-wx7nd", nil, true},
		"updated to another image, StatefulSet": {"db-4", nil, true},
		"updated to another image, before":      {"stuck-dq9kk", nil, true},
		"its new image cannot be pulled":        {"stuck-cgwbc", nil, false},

		"same digest: OpenKruise saw it complete":                             {"web-wx7nd", edits{oneDigest, oldContainer, noAgent}, true},
		"same digest, under way: the agent saw the container of the new spec": {"web-wx7nd", edits{oneDigest, inFlight, oldContainer}, true},
		"same digest, under way: the container started after the update":      {"web-wx7nd", edits{oneDigest, inFlight, noAgent}, true},
		"same digest, under way: the agent has not seen the new container":    {"web-wx7nd", edits{oneDigest, inFlight, otherContainer}, true},
		"same digest, under way: the container is older than the update":      {"web-wx7nd", edits{oneDigest, inFlight, noAgent, oldContainer}, false},
		"same digest, under way: the agent saw an older container":            {"web-wx7nd", edits{oneDigest, inFlight, otherContainer, oldContainer}, false},
		"same digest, under way: the container does not run":                  {"web-wx7nd", edits{oneDigest, inFlight, noAgent, crashed}, false},
		"same digest, under way: the kubelet has not seen the update":         {"web-wx7nd", edits{oneDigest, inFlight, unseen}, false},

		"only env: OpenKruise saw it complete":                              {"web-wx7nd", edits{onlyEnv, oldContainer, noAgent}, true},
		"only env: another client wrote the annotation since":               {"web-wx7nd", edits{onlyEnv, oldContainer, otherColor}, true},
		"only env, under way: the agent saw the new value":                  {"web-wx7nd", edits{onlyEnv, inFlight, oldContainer}, true},
		"only env, under way: the container started after the update":       {"web-wx7nd", edits{onlyEnv, inFlight, noAgent}, true},
		"only env, under way: the agent saw the old value":                  {"web-wx7nd", edits{onlyEnv, inFlight, oldContainer, otherColor}, false},
		"only env, under way: the container is older than the update":       {"web-wx7nd", edits{onlyEnv, inFlight, noAgent, oldContainer}, false},
		"only env, under way: the container does not run":                   {"web-wx7nd", edits{onlyEnv, inFlight, noAgent, crashed}, false},
		"only env, under way: what the agent wrote cannot be read":          {"web-wx7nd", edits{onlyEnv, inFlight, oldContainer, func(p *corev1.Pod) { p.Annotations[kruise.RuntimeContainerMetaKey] = "{" }}, false},
		"only env, under way: the container has no status":                  {"web-wx7nd", edits{onlyEnv, inFlight, func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }}, false},
		"only env, of a container that reads nothing":                       {"db-4", edits{onlyEnv, inFlight, oldContainer, noAgent}, true},
		"only env, under way: the kubelet has not seen a new container yet": {"web-wx7nd", edits{onlyEnv, inFlight, oldContainer, noAgent, unseen}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := openKruisePods(t)[tc.pod]
			for _, edit := range tc.edits {
				edit(p)
			}
			if why := IncompleteReason(p); (why == "") != tc.done {
				t.Errorf("Incomplete says %q, want done %v", why, tc.done)
			}
		})
	}
}

// The hashes are those that the node agent of OpenKruise wrote.
func TestHashesOfTheNodeAgent(t *testing.T) {
	for name, p := range openKruisePods(t) {
		for i := range p.Spec.Containers {
			c := &p.Spec.Containers[i]
			saw, told := runtimemeta.ContainerMeta(p, statusOf(p, c.Name))
			if !told {
				t.Errorf("the annotation has no container %s of pod %s", c.Name, name)
			}
			if want := name != "stuck-cgwbc"; slices.Contains(runtimemeta.PlainHashes(c), saw.Hashes.PlainHash) != want {
				t.Errorf("container %s of pod %s was started by its spec: %v, want %v", c.Name, name, !want, want)
			}
			if got := runtimemeta.ExpectedEnvHash(p, c); got != saw.Hashes.ExtractedEnvFromMetadataHash {
				t.Errorf("the env of container %s of pod %s has hash %d, want %d", c.Name, name, got, saw.Hashes.ExtractedEnvFromMetadataHash)
			}
		}
	}
}

// The next update waits for what OpenKruise has begun, and for nothing that it has
// seen complete.
func TestTheNextUpdateWaitsForWhatOpenKruiseHasBegun(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*corev1.Pod)
		want containers
	}{
		"complete, with one digest": {func(p *corev1.Pod) {
			delete(p.Annotations, kruise.RuntimeContainerMetaKey)
			p.Status.ContainerStatuses[1].State.Running.StartedAt = metav1.Time{}
		}, containers{}},
		"the image is not there yet": {func(p *corev1.Pod) {
			FindCondition(p, kruise.InPlaceUpdateReady).Status = corev1.ConditionFalse
			st := statusOf(p, "main")
			st.ImageID, st.Image, st.State = openKruiseImage, "docker.io/library/nginx:1.25", corev1.ContainerState{}
			delete(p.Annotations, kruise.RuntimeContainerMetaKey)
		}, containers{"main": {ImageID: openKruiseImage}}},
		"the env is not there yet": {func(p *corev1.Pod) {
			FindCondition(p, kruise.InPlaceUpdateReady).Status = corev1.ConditionFalse
			statusOf(p, "main").State, statusOf(p, "main").ContainerID = corev1.ContainerState{}, "containerd://old"
			s, err := DecodeState(p)
			if err != nil {
				t.Fatal(err)
			}
			s.LastContainerStatuses, s.UpdateEnvFromMetadata = nil, true
			if err := setState(p, s); err != nil {
				t.Fatal(err)
			}
		}, containers{"main": {ContainerID: "containerd://old"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := openKruisePods(t)["web-wx7nd"]
			tc.edit(p)
			if diff := cmp.Diff(tc.want, unfinishedContainers(p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
