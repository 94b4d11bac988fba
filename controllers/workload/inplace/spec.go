// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// UpdateSpec returns the update for a difference. refreshEnv is true if
// containers are to restart for metadata that their env reads. Otherwise all metadata
// is only written.
func (d Difference) UpdateSpec(target string, graceSeconds int32, refreshEnv bool) (*kruise.UpdateSpec, error) {
	spec := &kruise.UpdateSpec{
		Revision:           target,
		ContainerImages:    maps.Clone(d.images),
		ContainerResources: maps.Clone(d.resources),
		GraceSeconds:       graceSeconds,
	}
	if graceSeconds > 0 {
		spec.OldTemplate, spec.NewTemplate = d.Old, d.New
	}
	if len(d.metadata) == 0 {
		return spec, nil
	}
	apart := Metadata{}
	if refreshEnv {
		for name, read := range d.EnvRefresh() {
			if spec.ContainerRefMetadata == nil {
				spec.ContainerRefMetadata = map[string]kruise.ContainerRefMetadata{}
			}
			spec.ContainerRefMetadata[name] = kruise.ContainerRefMetadata(read)
			spec.UpdateEnvFromMetadata = true
			for _, kind := range []string{labels, annotations} {
				for k, v := range *read.kindEntries(kind) {
					apart.setEntry(kind, k, v)
				}
			}
		}
	}
	patch, err := metadataPatch(d.Old.ObjectMeta, d.New.ObjectMeta, &apart)
	if err != nil {
		return nil, err
	}
	spec.MetaDataPatch = patch
	return spec, nil
}

// ResumePending adds what an earlier update has not done on the pod: batches that had
// not begun. The pod's label has the revision of that update already, so no difference of revisions
// includes them, and the record of the earlier update is about to be replaced.
func (d Difference) ResumePending(spec *kruise.UpdateSpec, pod *corev1.Pod) {
	s, err := DecodeState(pod)
	if err != nil || s == nil { // a record that cannot be read has nothing to resume
		return
	}
	for i := range d.New.Spec.Containers {
		c := &d.New.Spec.Containers[i]
		if _, pending := s.NextContainerImages[c.Name]; pending {
			spec.ContainerImages = setMapKey(spec.ContainerImages, c.Name, c.Image)
		}
		if pending, ok := s.NextContainerResources[c.Name]; ok {
			r := spec.ContainerResources[c.Name]
			r.Limits = mergePending(r.Limits, pending.Limits, c.Resources.Limits)
			r.Requests = mergePending(r.Requests, pending.Requests, defaultedRequests(c))
			if len(r.Limits)+len(r.Requests) > 0 {
				spec.ContainerResources = setMapKey(spec.ContainerResources, c.Name, r)
			}
		}
		if pending, ok := s.NextContainerRefMetadata[c.Name]; ok {
			m := spec.ContainerRefMetadata[c.Name]
			m.Labels = mergePending(m.Labels, pending.Labels, d.New.Labels)
			m.Annotations = mergePending(m.Annotations, pending.Annotations, d.New.Annotations)
			if len(m.Labels)+len(m.Annotations) > 0 {
				spec.ContainerRefMetadata = setMapKey(spec.ContainerRefMetadata, c.Name, m)
				spec.UpdateEnvFromMetadata = true
			}
		}
	}
}

// mergePending gives each pending key its present value, if it has one.
func mergePending[M ~map[K]V, K comparable, V any](m, pending, now M) M {
	m = maps.Clone(m) // the map belongs to the difference, which other pods share
	for k := range pending {
		if v, ok := now[k]; ok {
			m = setMapKey(m, k, v)
		}
	}
	return m
}

func setMapKey[M ~map[K]V, K comparable, V any](m M, k K, v V) M {
	if m == nil {
		m = M{}
	}
	m[k] = v
	return m
}

// metadataPatch returns the strategic merge patch between the metadata of two
// templates, without the keys that are written with a container's batch.
func metadataPatch(from, to metav1.ObjectMeta, apart *Metadata) ([]byte, error) {
	strip := func(m metav1.ObjectMeta) ([]byte, error) {
		m = *m.DeepCopy()
		for k := range apart.Labels {
			delete(m.Labels, k)
		}
		for k := range apart.Annotations {
			delete(m.Annotations, k)
		}
		return json.Marshal(&corev1.Pod{ObjectMeta: m})
	}
	a, err := strip(from)
	if err != nil {
		return nil, fmt.Errorf("encoding template metadata: %w", err)
	}
	b, err := strip(to)
	if err != nil {
		return nil, fmt.Errorf("encoding template metadata: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(a, b, &corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("comparing template metadata: %w", err)
	}
	return patch, nil
}

// patchMetadata applies a metadataPatch to a pod.
func patchMetadata(pod *corev1.Pod, patch []byte) error {
	if len(patch) == 0 {
		return nil
	}
	raw, err := json.Marshal(&corev1.Pod{ObjectMeta: pod.ObjectMeta})
	if err != nil {
		return fmt.Errorf("encoding pod metadata: %w", err)
	}
	merged, err := strategicpatch.StrategicMergePatch(raw, patch, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("patching pod metadata: %w", err)
	}
	out := corev1.Pod{}
	if err := json.Unmarshal(merged, &out); err != nil {
		return fmt.Errorf("reading patched pod metadata: %w", err)
	}
	pod.Labels, pod.Annotations, pod.Finalizers = out.Labels, out.Annotations, out.Finalizers
	return nil
}
