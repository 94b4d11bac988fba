// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// countPods applies WS-06: it computes the status from the existing pods. Records count until the cache shows their pod,
// but not indefinitely.
func (t *reconcileRound) countPods() {
	versions := map[string][]kruise.WorkloadSpreadSubsetStatus{}
	at := func(version string) []kruise.WorkloadSpreadSubsetStatus {
		if versions[version] == nil {
			all := make([]kruise.WorkloadSpreadSubsetStatus, len(t.w.Spec.Subsets))
			for i := range all {
				all[i].Name = t.w.Spec.Subsets[i].Name
				for _, was := range t.w.Status.VersionedSubsetStatuses[version] {
					if was.Name == all[i].Name {
						was.DeepCopyInto(&all[i])
						all[i].Replicas, all[i].Conditions = 0, nil
					}
				}
			}
			versions[version] = all
		}
		return versions[version]
	}
	for version := range t.w.Status.VersionedSubsetStatuses {
		at(version)
	}
	if len(t.pods) == 0 && len(versions) == 0 {
		at(kruise.WorkloadSpreadVersionIgnored)
	}
	seen := map[string]*corev1.Pod{}
	for _, pod := range t.pods {
		i, version := t.part[pod.UID], t.r.version.PodVersion(t.w, pod)
		if i < 0 {
			continue
		}
		s := &at(version)[i]
		delete(s.CreatingPods, pod.Name)
		if m := spread.MarkOf(pod); m != nil && m.UID != "" {
			delete(s.CreatingPods, m.UID)
		}
		if availability.IsActive(pod) {
			s.Replicas++
			seen[s.Name+"/"+pod.Name] = pod
		}
	}
	for version, all := range versions {
		left := version == kruise.WorkloadSpreadVersionIgnored && len(versions) == 1
		for i := range all {
			t.expireRecords(&all[i], seen)
			all[i].MissingReplicas = spread.MissingPods(t.limits[i], &all[i])
			left = left || all[i].Replicas > 0 || len(all[i].CreatingPods)+len(all[i].DeletingPods) > 0
		}
		if !left {
			delete(versions, version)
		}
	}
	t.status.ObservedGeneration = t.w.Generation
	t.status.VersionedSubsetStatuses = versions
	t.status.SubsetStatuses = t.sumVersions(versions)
}

// expireRecords drops records that are too old, or whose pods are gone.
func (t *reconcileRound) expireRecords(s *kruise.WorkloadSpreadSubsetStatus, active map[string]*corev1.Pod) {
	for name, at := range s.CreatingPods {
		if left := at.Add(spread.CreatingFor).Sub(t.now); left > 0 {
			t.requeueWithin(left + time.Millisecond)
			continue
		}
		delete(s.CreatingPods, name)
		t.r.recordEventOnce(t.w, kruise.WorkloadSpreadCreatePodFailedReason, name, fmt.Sprintf("Pod %s of subset %s was let in %s ago and has not been seen since", name, s.Name, spread.CreatingFor))
	}
	for name, at := range s.DeletingPods {
		pod := active[s.Name+"/"+name]
		left := at.Add(spread.DeletingFor).Sub(t.now)
		switch {
		case pod == nil || pod.CreationTimestamp.After(at.Time): // the pod is gone, or another pod has its name
			delete(s.DeletingPods, name)
		case left > 0:
			t.requeueWithin(left + time.Millisecond)
		default:
			delete(s.DeletingPods, name)
			t.r.recordEventOnce(t.w, kruise.WorkloadSpreadDeletePodFailedReason, string(pod.UID), fmt.Sprintf("Pod %s of subset %s was to be deleted %s ago and is still there", name, s.Name, spread.DeletingFor))
		}
	}
	if len(s.CreatingPods) == 0 {
		s.CreatingPods = nil
	}
	if len(s.DeletingPods) == 0 {
		s.DeletingPods = nil
	}
}

// sumVersions returns the statuses of the subsets, summed over all versions.
func (t *reconcileRound) sumVersions(versions map[string][]kruise.WorkloadSpreadSubsetStatus) []kruise.WorkloadSpreadSubsetStatus {
	out := make([]kruise.WorkloadSpreadSubsetStatus, len(t.w.Spec.Subsets))
	for i := range out {
		s := &out[i]
		s.Name = t.w.Spec.Subsets[i].Name
		if all, ok := versions[kruise.WorkloadSpreadVersionIgnored]; ok && len(versions) == 1 {
			all[i].DeepCopyInto(s)
			continue
		}
		for _, all := range versions {
			s.Replicas += all[i].Replicas
		}
		s.MissingReplicas = spread.MissingPods(t.limits[i], s)
	}
	return out
}
