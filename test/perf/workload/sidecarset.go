// SPDX-License-Identifier: Apache-2.0

package workload

// Images of the sidecar, before and after its upgrade.
var sidecarImages = [2]string{image(5), image(6)}

// Pods is a Deployment that is only created: what pods cost that no SidecarSet
// concerns.
func Pods() Kind {
	k := Deployment()
	k.Updates = nil
	return k
}

// SidecarSet is a SidecarSet in v1alpha1 with the pods of a Deployment, so that all
// that the program writes is for the SidecarSet. The pods are created with the sidecar,
// which is then upgraded in place.
func SidecarSet() Kind {
	k := Pods()
	k.Name = "SidecarSet"
	k.Yardstick = Deployment().Name
	k.Controllers = nil
	k.Reconciler = "sidecarset-controller"
	k.First = sidecarImages[0]
	set := Part{
		Resource: kruise("v1alpha1", "sidecarsets"),
		Cluster:  true,
		kind:     "SidecarSet",
		spec: func(s Shape) map[string]any {
			return map[string]any{
				"selector": selector(s), "namespace": s.Namespace,
				"containers":     []any{map[string]any{"name": "sidecar", "image": sidecarImages[0]}},
				"updateStrategy": map[string]any{"type": "RollingUpdate", "maxUnavailable": MaxUnavailable},
			}
		},
		reached: func(s status, pods int) bool {
			return s.all(pods, "matchedPods", "updatedPods", "readyPods", "updatedReadyPods")
		},
	}
	upgrade := updateAt("/spec/containers/0/image", Upgrade, sidecarImages[1])
	upgrade.Of = set
	k.Before, k.Updates = []Part{set}, []Update{upgrade}
	return k
}
