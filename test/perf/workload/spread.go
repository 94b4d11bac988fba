// SPDX-License-Identifier: Apache-2.0

package workload

import corev1 "k8s.io/api/core/v1"

// Recreated is a CloneSet that is created and recreated, the yardstick of one with a
// WorkloadSpread.
func Recreated() Kind {
	k := CloneSet()
	k.Yardstick = ""
	k.Updates = k.Updates[1:]
	return k
}

// Spread is a CloneSet whose pods a WorkloadSpread in v1alpha1 spreads over the zones
// of the nodes, as many in each; the last zone has no maximum.
func Spread() Kind {
	k := Recreated()
	k.Name = "CloneSet with WorkloadSpread"
	k.Yardstick = CloneSet().Name
	k.Reconciler = "workloadspread-controller"
	target := k.Main
	k.Before = []Part{{
		Resource: kruise("v1alpha1", "workloadspreads"),
		kind:     "WorkloadSpread",
		spec: func(s Shape) map[string]any {
			return map[string]any{
				"targetRef": map[string]any{"apiVersion": target.Resource.GroupVersion().String(), "kind": target.kind, "name": s.Name},
				"subsets":   spreadSubsets(s),
			}
		},
		reached: func(s status, pods int) bool {
			subsets, _ := s["subsetStatuses"].([]any)
			sum := int64(0)
			for _, one := range subsets {
				subset, _ := one.(map[string]any)
				sum += status(subset).number("replicas")
			}
			return sum == int64(pods)
		},
	}}
	return k
}

func spreadSubsets(s Shape) []any {
	subsets := make([]any, 0, len(s.Zones)+1)
	for i, zone := range s.Zones {
		subset := map[string]any{"name": zone, "requiredNodeSelectorTerm": inZone(zone)}
		if i < len(s.Zones)-1 {
			subset["maxReplicas"] = int64((s.Pods + len(s.Zones) - 1) / len(s.Zones))
		}
		subsets = append(subsets, subset)
	}
	if len(subsets) == 0 { // nodes without zones
		subsets = append(subsets, map[string]any{"name": "half", "maxReplicas": int64((s.Pods + 1) / 2)}, map[string]any{"name": "rest"})
	}
	return subsets
}

// inZone is a term of node affinity.
func inZone(zone string) map[string]any {
	return map[string]any{"matchExpressions": []any{
		map[string]any{"key": corev1.LabelTopologyZone, "operator": "In", "values": []any{zone}},
	}}
}
