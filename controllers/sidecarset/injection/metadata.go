// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"maps"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// PatchMetadata sets annotations of a pod as a SidecarSet specifies (SS-04).
func PatchMetadata(pod *corev1.Pod, patches []kruise.SidecarSetPatchPodMetadata) error {
	for i, patch := range patches {
		for _, key := range slices.Sorted(maps.Keys(patch.Annotations)) {
			value := patch.Annotations[key]
			own, there := pod.Annotations[key]
			switch patch.PatchPolicy {
			case kruise.SidecarSetOverwritePatchPolicy:
			case kruise.SidecarSetMergePatchJSONPatchPolicy:
				if own == "" {
					break
				}
				merged, err := jsonpatch.MergePatch([]byte(own), []byte(value))
				if err != nil {
					return fmt.Errorf("[%d].annotations[%s]: merging it with that of the pod: %w", i, key, err)
				}
				value = string(merged)
			default:
				if there {
					continue
				}
			}
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
		}
	}
	return nil
}
