// SPDX-License-Identifier: Apache-2.0

// Package subset has the functions that UnitedDeployments and WorkloadSpreads share: how a pod is made part of
// a subset of the nodes, and when a subset has no room.
package subset

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// AddNodeTerm adds a term to the required node affinity of pods: each existing term is
// combined with it (UD-13, WS-10).
func AddNodeTerm(spec *corev1.PodSpec, term corev1.NodeSelectorTerm) {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := spec.Affinity.NodeAffinity
	if node.RequiredDuringSchedulingIgnoredDuringExecution == nil || len(node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) == 0 {
		node.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*term.DeepCopy()}}
		return
	}
	terms := node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		t := &terms[i]
		if len(t.MatchExpressions)+len(t.MatchFields) == 0 { // an empty term matches no node, and must stay so
			continue
		}
		added := term.DeepCopy()
		t.MatchExpressions = slices.Concat(t.MatchExpressions, added.MatchExpressions)
		t.MatchFields = slices.Concat(t.MatchFields, added.MatchFields)
	}
}

// ApplyPatch returns a copy of an object with a strategic merge patch applied. An empty patch changes nothing.
func ApplyPatch[T any](object *T, patch []byte) (*T, error) {
	out := new(T)
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding what is patched: %w", err)
	}
	if len(patch) > 0 {
		if raw, err = strategicpatch.StrategicMergePatch(raw, patch, new(T)); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, err
	}
	return out, nil
}

// IsUnschedulable reports whether a pod has found no node for longer than a time (UD-07, WS-08). If it
// has not, again is the delay after which to check again; 0 for never.
func IsUnschedulable(pod *corev1.Pod, longer time.Duration, now time.Time) (stuck bool, again time.Duration) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" || pod.Spec.NodeName != "" {
		return false, 0
	}
	if left := pod.CreationTimestamp.Add(longer).Sub(now); left >= 0 {
		return false, left + time.Millisecond
	}
	unschedulable := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
	if !unschedulable { // the scheduler has not processed the pod yet
		return false, time.Second
	}
	return true, 0
}
