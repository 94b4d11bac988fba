// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// barriered is a pod whose containers are named with their barrier, such as
// "a/5" for one of priority 5 and "b" for one without.
func barriered(containers ...string) *corev1.Pod {
	p := &corev1.Pod{}
	for _, spec := range containers {
		name, key := spec, ""
		if i := slices.Index([]byte(spec), '/'); i >= 0 {
			name, key = spec[:i], spec[i+1:]
		}
		c := corev1.Container{Name: name, Image: name + ":1"}
		if key != "" {
			c.Env = []corev1.EnvVar{{Name: "OTHER", Value: "1"}, {Name: kruise.ContainerLaunchBarrierEnv, ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: key},
			}}}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

func images(names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = n + ":2"
	}
	return out
}

func reads(labels ...string) kruise.ContainerRefMetadata {
	m := kruise.ContainerRefMetadata{Labels: map[string]string{}}
	for _, l := range labels {
		m.Labels[l] = "2"
	}
	return m
}

func TestBatch(t *testing.T) {
	type refs = map[string]kruise.ContainerRefMetadata
	tests := map[string]struct {
		pod        *corev1.Pod
		w          pendingWork
		now, later []string
	}{
		"without barriers all go at once, by name": {
			barriered("b", "a", "c"), pendingWork{images: images("a", "b")}, []string{"a", "b"}, nil,
		},
		"the highest barrier goes first": {
			barriered("a/p_1", "b/p_9", "c/p_5"), pendingWork{images: images("a", "b", "c")}, []string{"b"}, []string{"a", "c"},
		},
		"barriers may be negative": {
			barriered("a/p_-1", "b/p_-9"), pendingWork{images: images("a", "b")}, []string{"a"}, []string{"b"},
		},
		"barriers have 64 bits": {
			barriered("a/p_9223372036854775806", "b/p_9223372036854775807", "c/p_-9223372036854775808"), pendingWork{images: images("a", "b", "c")}, []string{"b"}, []string{"a", "c"},
		},
		"a container without a barrier goes with the first": {
			barriered("a/p_1", "b/p_9", "c"), pendingWork{images: images("a", "b", "c")}, []string{"b", "c"}, []string{"a"},
		},
		"a barrier of a container that does not change counts for nothing": {
			barriered("a/p_1", "b/p_9"), pendingWork{images: images("a")}, []string{"a"}, nil,
		},
		"equal barriers go together": {
			barriered("a/p_5", "b/p_5", "c/p_1"), pendingWork{images: images("a", "b", "c")}, []string{"a", "b"}, []string{"c"},
		},
		"a barrier that is no number is none": {
			barriered("a/p_x", "b/p_9", "c/9"), pendingWork{images: images("a", "b", "c")}, []string{"a", "b", "c"}, nil,
		},
		"containers that read one key go together": {
			barriered("a/p_9", "b/p_1", "c/p_1"),
			pendingWork{metadata: refs{"a": reads("k"), "b": reads("k"), "c": reads("l")}}, []string{"a", "b"}, []string{"c"},
		},
		"and so do those that read a key of them": {
			barriered("a/p_9", "b/p_1", "c/p_2", "d/p_3"),
			pendingWork{metadata: refs{"a": reads("k"), "b": reads("k", "l"), "c": reads("l", "m"), "d": reads("n")}}, []string{"a", "b", "c"}, []string{"d"},
		},
		"a label and an annotation of one name are two keys": {
			barriered("a/p_9", "b/p_1"),
			pendingWork{metadata: refs{"a": reads("k"), "b": {Annotations: map[string]string{"k": "2"}}}}, []string{"a"}, []string{"b"},
		},
		"images do not bind containers together": {
			barriered("a/p_9", "b/p_1"), pendingWork{images: images("a", "b"), metadata: refs{"b": reads("k")}}, []string{"a"}, []string{"b"},
		},
		"resources have their turn too": {
			barriered("a/p_9", "b/p_1"),
			pendingWork{images: images("a"), resources: map[string]corev1.ResourceRequirements{"b": {}}}, []string{"a"}, []string{"b"},
		},
		"nothing to do is no batch": {barriered("a/p_9", "b"), pendingWork{}, nil, nil},
		"a container that the pod does not have has no turn": {
			barriered("a"), pendingWork{images: images("gone")}, nil, nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now, later := splitBatch(tc.pod, tc.w)
			if !slices.Equal(now, tc.now) || !slices.Equal(later, tc.later) {
				t.Errorf("now %v, later %v; want %v, %v", now, later, tc.now, tc.later)
			}
		})
	}
}

// However containers depend on one another, each that changes has exactly one
// turn, a barrier is never before a higher one that shares nothing with a lower,
// no key is split over batches, and the batches come to an end.
func TestBatchesCoverAllContainersOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := &corev1.Pod{}
		w := pendingWork{images: map[string]string{}, metadata: map[string]kruise.ContainerRefMetadata{}, resources: map[string]corev1.ResourceRequirements{}}
		var specs []string
		for i := range rapid.IntRange(1, 6).Draw(t, "containers") {
			name := fmt.Sprint("c", i)
			spec := name
			if rapid.Bool().Draw(t, "has a barrier") {
				spec += fmt.Sprint("/p_", rapid.IntRange(-2, 2).Draw(t, "barrier"))
			}
			specs = append(specs, spec)
			if rapid.Bool().Draw(t, "image changes") {
				w.images[name] = "x:2"
			}
			if keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"k", "l", "m"}), 0, 2, rapid.ID).Draw(t, "keys"); len(keys) > 0 {
				w.metadata[name] = reads(keys...)
			}
			if rapid.Bool().Draw(t, "resources change") {
				w.resources[name] = corev1.ResourceRequirements{}
			}
		}
		pod = barriered(specs...)
		changed := 0
		for i := range pod.Spec.Containers {
			if w.hasContainer(pod.Spec.Containers[i].Name) {
				changed++
			}
		}
		done, keyBatch := map[string]bool{}, map[string]int{}
		for round := 0; len(w.images)+len(w.metadata)+len(w.resources) > 0; round++ {
			now, later := splitBatch(pod, w)
			if len(now) == 0 {
				t.Fatalf("no container has its turn, but %v wait", later)
			}
			if !slices.IsSorted(now) {
				t.Fatalf("%v is not in order", now)
			}
			for _, name := range now {
				if done[name] {
					t.Fatalf("%s has a second turn", name)
				}
				done[name] = true
				for k := range w.metadata[name].Labels {
					if first, ok := keyBatch[k]; ok && first != round {
						t.Fatalf("key %s is written in batches %d and %d", k, first, round)
					}
					keyBatch[k] = round
				}
			}
			w.retainContainers(later)
		}
		if len(done) != changed {
			t.Fatalf("%d containers of %d had their turn", len(done), changed)
		}
	})
}
