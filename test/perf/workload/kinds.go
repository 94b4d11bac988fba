// SPDX-License-Identifier: Apache-2.0

package workload

import "k8s.io/apimachinery/pkg/runtime/schema"

// kruise is a resource of OpenKruise's API in the version that every implementation
// serves.
func kruise(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps.kruise.io", Version: version, Resource: resource}
}

func native(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

// CloneSet is a CloneSet in v1alpha1.
func CloneSet() Kind {
	return Kind{
		Name:       "CloneSet",
		First:      firstImage(),
		Yardstick:  Deployment().Name,
		Reconciler: "cloneset-controller",
		Updates: []Update{
			update(InPlace, image(9)),
			update(Recreate, image(10), operation{"replace", "/spec/updateStrategy/type", "ReCreate"}),
		},
		Main: Part{
			Resource: kruise("v1alpha1", "clonesets"),
			kind:     "CloneSet",
			spec: func(s Shape) map[string]any {
				return map[string]any{
					"replicas": int64(s.Pods), "selector": selector(s), "template": template(s),
					"updateStrategy": map[string]any{"type": "InPlaceIfPossible", "maxUnavailable": MaxUnavailable},
				}
			},
			reached: func(s status, pods int) bool {
				return s.all(pods, "replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas")
			},
		},
	}
}

// Deployment is a native Deployment that replaces pods as a CloneSet does:
// within maxUnavailable, without a surge. It is the yardstick of the machine.
func Deployment() Kind {
	return Kind{
		Name:        "Deployment",
		First:       firstImage(),
		Controllers: []string{"deployment-controller", "replicaset-controller"},
		Updates:     []Update{update(Recreate, image(10))},
		Main: Part{
			Resource: native("deployments"),
			kind:     "Deployment",
			spec: func(s Shape) map[string]any {
				return map[string]any{
					"replicas": int64(s.Pods), "selector": selector(s), "template": template(s),
					"strategy": map[string]any{
						"type":          "RollingUpdate",
						"rollingUpdate": map[string]any{"maxUnavailable": MaxUnavailable, "maxSurge": int64(0)},
					},
				}
			},
			reached: func(s status, pods int) bool {
				return s.all(pods, "replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
			},
		},
	}
}
