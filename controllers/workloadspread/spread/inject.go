// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
)

// InjectSubset makes a pod part of a subset (WS-10).
func InjectSubset(w *kruise.WorkloadSpread, at *Place, pod *corev1.Pod) error {
	part := at.Subset
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, part.Tolerations...)
	if part.RequiredNodeSelector != nil {
		subset.AddNodeTerm(&pod.Spec, *part.RequiredNodeSelector)
	}
	if len(part.PreferredNodeSelector) > 0 {
		if pod.Spec.Affinity == nil {
			pod.Spec.Affinity = &corev1.Affinity{}
		}
		if pod.Spec.Affinity.NodeAffinity == nil {
			pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
		}
		node := pod.Spec.Affinity.NodeAffinity
		node.PreferredDuringSchedulingIgnoredDuringExecution = append(node.PreferredDuringSchedulingIgnoredDuringExecution, part.PreferredNodeSelector...)
	}
	if len(part.Patch.Raw) > 0 {
		class := pod.Spec.PriorityClassName
		patched, err := subset.ApplyPatch(pod, part.Patch.Raw)
		if err != nil {
			return fmt.Errorf("making the patch of subset %s: %w", part.Name, err)
		}
		*pod = *patched
		if pod.Spec.PriorityClassName != class {
			pod.Spec.Priority = nil
		}
	}
	text, err := json.Marshal(Mark{Name: w.Name, Subset: part.Name, UID: at.UID})
	if err != nil {
		return fmt.Errorf("marking the pod: %w", err)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.MatchedWorkloadSpreadKey, string(text))
	if UsesCosts(w) { // the cost that the controller would write
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.PodDeletionCostKey, strconv.Itoa(at.Cost))
	}
	return nil
}
