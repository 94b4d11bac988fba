// SPDX-License-Identifier: Apache-2.0

// Package runtimemeta is what the manager and the node agent share about running
// containers: the annotation in which the agent reports what they run, and the
// hashes in it (A-05, PL-06, PL-07). Both compute the hashes with the same functions. The
// hashes are those of kubelets and of OpenKruise's node agent.
package runtimemeta

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"
)

// The maps of a pod's metadata that an env can read, as they are named in a fieldPath.
const (
	Labels      = "labels"
	Annotations = "annotations"
)

// FieldRef reads a fieldPath such as metadata.labels['key'] or metadata.annotations['key'].
func FieldRef(path string) (kind, key string, ok bool) {
	for _, kind := range []string{Labels, Annotations} {
		if rest, ok := strings.CutPrefix(path, "metadata."+kind+"['"); ok {
			return kind, strings.TrimSuffix(rest, "']"), strings.HasSuffix(rest, "']")
		}
	}
	return "", "", false
}

// ReadsMetadata reports whether the env of a container reads a label or an annotation.
func ReadsMetadata(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		_, _, ok := envFieldRef(&e)
		return ok
	})
}

// ExpectedEnvHash is the hash of the env that a container would have if it were started with
// the labels and annotations that its pod has now. A key that the pod does not have reads
// as an empty value.
func ExpectedEnvHash(pod *corev1.Pod, c *corev1.Container) uint64 {
	return hashValue(extractMetadataEnv(c, func(e *corev1.EnvVar) string {
		kind, key, _ := envFieldRef(e)
		if kind == Labels {
			return pod.Labels[key]
		}
		return pod.Annotations[key]
	}))
}

// ActualEnvHash is the hash of the env that a container runs with, given by name.
func ActualEnvHash(c *corev1.Container, env map[string]string) uint64 {
	return hashValue(extractMetadataEnv(c, func(e *corev1.EnvVar) string { return env[e.Name] }))
}

// PlainHashes are the hashes by which kubelets identify a container: of its name and image
// since Kubernetes 1.31, and of the whole container before.
func PlainHashes(c *corev1.Container) []uint64 {
	return []uint64{hashValue(map[string]string{"name": c.Name, "image": c.Image}), hashValue(c)}
}

// envFieldRef returns the metadata that an environment variable reads, if it reads any.
func envFieldRef(e *corev1.EnvVar) (kind, key string, ok bool) {
	if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
		return "", "", false
	}
	return FieldRef(e.ValueFrom.FieldRef.FieldPath)
}

// extractMetadataEnv returns the variables of a container that read metadata, in the order of the spec. It omits a
// variable that is defined again further down, since its value never reaches the process.
func extractMetadataEnv(c *corev1.Container, value func(*corev1.EnvVar) string) (out []corev1.EnvVar) {
	for i := range c.Env {
		e := &c.Env[i]
		again := slices.ContainsFunc(c.Env[i+1:], func(later corev1.EnvVar) bool { return later.Name == e.Name })
		if _, _, ok := envFieldRef(e); ok && !again {
			out = append(out, corev1.EnvVar{Name: e.Name, Value: value(e)})
		}
	}
	return out
}

func hashValue(v any) uint64 {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0 // cannot happen: containers and env are plain values
	}
	h := fnv.New32a()
	fmt.Fprint(h, dump.ForHash(raw))
	return uint64(h.Sum32())
}
