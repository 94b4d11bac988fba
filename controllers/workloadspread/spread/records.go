// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// How long records are valid (WS-06).
const (
	CreatingFor = 30 * time.Second
	DeletingFor = 15 * time.Second
)

// Unlimited is the value of missingReplicas for a subset without a limit.
const Unlimited int32 = -1

// Mark is the annotation of a pod in a subset.
type Mark struct {
	Name   string `json:"name"`
	Subset string `json:"subset"`
	// UID is the key under which a pod was recorded that had no name yet.
	UID string `json:"uid,omitempty"`
}

// MarkOf reads the annotation of a pod; nil if the pod has none that can be read.
func MarkOf(pod *corev1.Pod) *Mark {
	text := pod.Annotations[kruise.MatchedWorkloadSpreadKey]
	if text == "" {
		return nil
	}
	m, err := annotation.Decode[Mark](kruise.MatchedWorkloadSpreadKey, text)
	if err != nil {
		return nil
	}
	return &m
}

// Versions are the kinds of workloads, in lower case, whose versions are counted separately.
type Versions map[string]bool

// ParseVersions parses the value of the flag.
func ParseVersions(flag string) Versions {
	out := Versions{}
	for _, kind := range strings.Split(flag, ",") {
		if kind = strings.ToLower(strings.TrimSpace(kind)); kind != "" {
			out[kind] = true
		}
	}
	return out
}

// CountSeparately reports whether the versions of the workload of a spread are counted separately.
func (v Versions) CountSeparately(w *kruise.WorkloadSpread) bool {
	return v[strings.ToLower(w.Spec.TargetReference.Kind)]
}

// PodVersion returns the version of a pod (WS-09).
func (v Versions) PodVersion(w *kruise.WorkloadSpread, pod *corev1.Pod) string {
	if !v.CountSeparately(w) {
		return kruise.WorkloadSpreadVersionIgnored
	}
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
		return hash
	}
	if hash := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; hash != "" {
		return revision.ShortHash(hash)
	}
	return kruise.WorkloadSpreadVersionIgnored
}

// MaxPods returns how many pods a subset may have; nil if there is no limit.
func MaxPods(part *kruise.WorkloadSpreadSubset, replicas int) (*int, error) {
	if part.MaxReplicas == nil {
		return nil, nil
	}
	n, err := budget.ResolvePercent(*part.MaxReplicas, replicas, true)
	if err != nil {
		return nil, fmt.Errorf("reading maxReplicas of subset %s: %w", part.Name, err)
	}
	if n < 0 {
		return nil, fmt.Errorf("maxReplicas of subset %s is %d, want 0 or more", part.Name, n)
	}
	return &n, nil
}

// MissingPods returns how many more pods a subset may get, by the records.
func MissingPods(limit *int, s *kruise.WorkloadSpreadSubsetStatus) int32 {
	if limit == nil {
		return Unlimited
	}
	return int32(min(max(*limit-CountPods(s), 0), *limit)) //nolint:gosec // it is at most the limit
}

// CountPods returns how many pods a subset has, including those that are being created and excluding those
// that are being deleted.
func CountPods(s *kruise.WorkloadSpreadSubsetStatus) int {
	return max(int(s.Replicas)+len(s.CreatingPods)-len(s.DeletingPods), 0)
}

// statusOf returns the status of a subset of a version; an empty one for a new subset.
func statusOf(w *kruise.WorkloadSpread, version, name string) kruise.WorkloadSpreadSubsetStatus {
	for _, s := range w.Status.VersionedSubsetStatuses[version] {
		if s.Name == name {
			return s
		}
	}
	return kruise.WorkloadSpreadSubsetStatus{Name: name}
}

// setSubsetStatus replaces the status of a subset of a version.
func setSubsetStatus(w *kruise.WorkloadSpread, version string, limits []*int, s kruise.WorkloadSpreadSubsetStatus) {
	all := make([]kruise.WorkloadSpreadSubsetStatus, len(w.Spec.Subsets))
	for i := range w.Spec.Subsets {
		all[i] = statusOf(w, version, w.Spec.Subsets[i].Name)
		if all[i].Name == s.Name {
			all[i] = s
		}
		all[i].MissingReplicas = MissingPods(limits[i], &all[i])
	}
	if w.Status.VersionedSubsetStatuses == nil {
		w.Status.VersionedSubsetStatuses = map[string][]kruise.WorkloadSpreadSubsetStatus{}
	}
	w.Status.VersionedSubsetStatuses[version] = all
	if version == kruise.WorkloadSpreadVersionIgnored {
		w.Status.SubsetStatuses = slices.Clone(all)
	}
}

// IsUnschedulable reports whether the condition of a subset says that its pods find no node.
func IsUnschedulable(w *kruise.WorkloadSpread, name string) bool {
	for _, s := range w.Status.SubsetStatuses {
		if s.Name != name {
			continue
		}
		for _, c := range s.Conditions {
			if c.Type == kruise.WorkloadSpreadSubsetSchedulable && c.Status == metav1.ConditionFalse {
				return true
			}
		}
	}
	return false
}

// PodOrdinal returns the ordinal of a pod of a StatefulSet; nil for other pods.
func PodOrdinal(w *kruise.WorkloadSpread, pod *corev1.Pod) *int {
	if w.Spec.TargetReference.Kind != "StatefulSet" || pod.Name == "" {
		return nil
	}
	n, ok := facts.PodOrdinal(pod.Name)
	if !ok {
		return nil
	}
	return &n
}

// limitsOf returns the limits of the subsets, in their order.
func limitsOf(w *kruise.WorkloadSpread, replicas int) ([]*int, error) {
	out := make([]*int, len(w.Spec.Subsets))
	for i := range w.Spec.Subsets {
		var err error
		if out[i], err = MaxPods(&w.Spec.Subsets[i], replicas); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// buildSubsetInput builds the input of placement/subset.
func buildSubsetInput(w *kruise.WorkloadSpread, version string, limits []*int, pod *corev1.Pod, now time.Time) placement.SubsetInput {
	in := placement.SubsetInput{
		Now: now.UnixNano(),
		Spread: placement.Spread{
			Name: w.Name, Namespace: w.Namespace, Labels: w.Labels, Annotations: facts.VisibleAnnotations(w.Annotations), Kind: w.Spec.TargetReference.Kind, Workload: w.Spec.TargetReference.Name,
		},
		Pod: placement.NewPod{Name: pod.Name, Labels: pod.Labels, Ordinal: PodOrdinal(w, pod)},
	}
	if in.Pod.Name == "" {
		in.Pod.Name = pod.GenerateName
	}
	if version != kruise.WorkloadSpreadVersionIgnored {
		in.Pod.Version = version
	}
	for i := range w.Spec.Subsets {
		part := &w.Spec.Subsets[i]
		s := statusOf(w, version, part.Name)
		in.Subsets = append(in.Subsets, placement.SpreadSubset{
			Name: part.Name, Nodes: nodesOf(part.RequiredNodeSelector), Max: limits[i], Pods: CountPods(&s), Unschedulable: IsUnschedulable(w, part.Name),
		})
	}
	return in
}

func nodesOf(term *corev1.NodeSelectorTerm) map[string][]string {
	out := map[string][]string{}
	if term == nil {
		return out
	}
	for _, e := range term.MatchExpressions {
		if e.Operator == corev1.NodeSelectorOpIn {
			out[e.Key] = e.Values
		}
	}
	return out
}
