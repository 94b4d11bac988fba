// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/injection"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// UpdateInPlace implements rollout.KindWithInPlaceUpdate (SS-17): it changes images, and nothing else of the spec.
func (k *Kind) UpdateInPlace(ctx context.Context, r *rollout.Round, f *rollout.Facts, move rollout.Move) error {
	m, set, err := loadMemory(r)
	if err != nil {
		return err
	}
	pod := move.Pod.DeepCopy()
	if err := upgradePod(set, m.hashes, f.Templates.UpdateRevision(), pod, metav1.NewTime(f.Now)); err != nil {
		return fmt.Errorf("updating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if err := k.patchPod(ctx, r, move.Pod.Pod, pod); err != nil {
		return err
	}
	return k.ensureVerdict(ctx, r, pod, set.Name, true)
}

// patchPod writes a pod if it has not changed since it was read: other SidecarSets and its owner may write it too.
func (k *Kind) patchPod(ctx context.Context, r *rollout.Round, was, pod *corev1.Pod) error {
	err := r.CachedClient().Patch(ctx, pod, client.StrategicMergeFrom(was, client.MergeFromWithOptimisticLock{}))
	written := pod
	if err != nil {
		written = nil
	}
	r.RecordWrite(ctx, was, written, err)
	if err != nil {
		return fmt.Errorf("updating the containers of pod %s/%s: %w", was.Namespace, was.Name, err)
	}
	return nil
}

// upgradePod changes a pod to the latest revision.
func upgradePod(set *kruise.SidecarSet, hashes podmeta.Hashes, revision string, pod *corev1.Pod, now metav1.Time) error {
	for i := range set.Spec.Containers {
		c := &set.Spec.Containers[i]
		target := c.Name
		if podmeta.IsHot(c) {
			if target = hotTarget(set, c, pod); target == "" {
				continue
			}
		}
		if err := setImage(set, pod, target, c.Image, now); err != nil {
			return err
		}
		if !podmeta.IsHot(c) {
			continue
		}
		other := otherOf(c.Name, target)
		if err := podmeta.SetWorking(pod, c.Name, target); err != nil {
			return err
		}
		podmeta.SetVersions(pod, target, set.ResourceVersion, pod.Annotations[kruise.SidecarSetVersionPrefix+other])
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.SidecarSetVersionAltPrefix+other, set.ResourceVersion)
	}
	if err := injection.PatchMetadata(pod, set.Spec.PatchPodMetadata); err != nil {
		return fmt.Errorf("spec.patchPodMetadata%w", err)
	}
	return podmeta.InjectionRecord{Set: set.Name, Hashes: hashes, Revision: revision, Containers: podmeta.ContainersOf(&set.Spec), Now: now.Time}.AnnotatePod(pod)
}

// setImage changes an image, and records the container that runs now: the update is complete once another one runs.
func setImage(set *kruise.SidecarSet, pod *corev1.Pod, container, image string, now metav1.Time) error {
	c := containerOf(pod, container)
	if c == nil || c.Image == image {
		return nil
	}
	c.Image = image
	states, err := statesOf(pod)
	if err != nil {
		states = map[string]*kruise.InPlaceUpdateState{} // an annotation that does not parse is replaced
	}
	state := states[set.Name]
	if state == nil {
		state = &kruise.InPlaceUpdateState{Revision: hashOf(set), UpdateTimestamp: metav1.NewTime(now.UTC())}
		states[set.Name] = state
	}
	if state.LastContainerStatuses == nil {
		state.LastContainerStatuses = map[string]kruise.InPlaceUpdateContainerStatus{}
	}
	for i := range pod.Status.ContainerStatuses {
		if st := &pod.Status.ContainerStatuses[i]; st.Name == container {
			state.LastContainerStatuses[container] = kruise.InPlaceUpdateContainerStatus{ImageID: st.ImageID, ContainerID: st.ContainerID}
		}
	}
	return podmeta.WriteJSON(pod, kruise.SidecarSetInPlaceUpdateStateKey, states)
}

func hashOf(set *kruise.SidecarSet) string {
	hashes, err := podmeta.HashesOf(&set.Spec)
	if err != nil { // the same spec was hashed before without an error
		return ""
	}
	return hashes.Hash
}
