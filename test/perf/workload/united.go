// SPDX-License-Identifier: Apache-2.0

package workload

import "fmt"

// UnitedDeployment is a UnitedDeployment in v1alpha1 of CloneSets, whose subsets are
// in the zones of the nodes in turn, and share the pods equally.
func UnitedDeployment() Kind {
	return Kind{
		Name:       "UnitedDeployment",
		Reconciler: "uniteddeployment-controller",
		First:      firstImage(),
		Updates:    []Update{updateAt("/spec/template/cloneSetTemplate/spec/template/spec/containers/0/image", InPlace, image(9))},
		Main: Part{
			Resource: kruise("v1alpha1", "uniteddeployments"),
			kind:     "UnitedDeployment",
			spec: func(s Shape) map[string]any {
				subsets := make([]any, s.Subsets)
				for i := range subsets {
					subset := map[string]any{"name": fmt.Sprintf("subset-%02d", i)}
					if len(s.Zones) > 0 {
						subset["nodeSelectorTerm"] = inZone(s.Zones[i%len(s.Zones)])
					}
					subsets[i] = subset
				}
				return map[string]any{
					"replicas": int64(s.Pods), "selector": selector(s), "topology": map[string]any{"subsets": subsets},
					"template": map[string]any{"cloneSetTemplate": map[string]any{
						"metadata": map[string]any{"labels": map[string]any{GroupLabel: s.Name}},
						"spec": map[string]any{
							"selector": selector(s), "template": template(s),
							// Templates are of CloneSets in v1beta1.
							"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{
								"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": MaxUnavailable,
							}},
						},
					}},
				}
			},
			reached: func(s status, pods int) bool {
				return s.all(pods, "replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas")
			},
		},
	}
}
