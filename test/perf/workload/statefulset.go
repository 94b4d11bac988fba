// SPDX-License-Identifier: Apache-2.0

package workload

// StatefulSet is a native StatefulSet that creates and replaces pods in parallel:
// its maxUnavailable needs the gate MaxUnavailableStatefulSet. It is the yardstick of
// an Advanced one.
func StatefulSet() Kind {
	k := statefulSet(map[string]any{"maxUnavailable": MaxUnavailable})
	k.Name = "StatefulSet"
	k.Controllers = []string{"statefulset-controller"}
	k.Main.Resource = native("statefulsets")
	k.Updates = []Update{update(Recreate, image(10))}
	return k
}

// AdvancedStatefulSet is an Advanced StatefulSet in v1beta1, Parallel as the native
// one.
func AdvancedStatefulSet() Kind {
	k := statefulSet(map[string]any{"maxUnavailable": MaxUnavailable, "podUpdatePolicy": "InPlaceIfPossible"})
	k.Name = "Advanced StatefulSet"
	k.Yardstick = StatefulSet().Name
	k.Reconciler = "statefulset-controller"
	k.Main.Resource = kruise("v1beta1", "statefulsets")
	k.Updates = []Update{
		update(InPlace, image(9)),
		update(Recreate, image(10), operation{"replace", "/spec/updateStrategy/rollingUpdate/podUpdatePolicy", "ReCreate"}),
	}
	shared := k.Main.spec
	k.Main.spec = func(s Shape) map[string]any {
		spec := shared(s)
		// The API requires this gate of pods that may be updated in place.
		pod := spec["template"].(map[string]any)["spec"].(map[string]any)
		pod["readinessGates"] = []any{map[string]any{"conditionType": "InPlaceUpdateReady"}}
		return spec
	}
	return k
}

// statefulSet is what both kinds have in common.
func statefulSet(rollingUpdate map[string]any) Kind {
	return Kind{First: firstImage(), Main: Part{
		kind: "StatefulSet",
		spec: func(s Shape) map[string]any {
			return map[string]any{
				"replicas": int64(s.Pods), "selector": selector(s), "template": template(s),
				"serviceName": s.Name, "podManagementPolicy": "Parallel",
				"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": rollingUpdate},
			}
		},
		reached: func(s status, pods int) bool {
			return s.all(pods, "replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
		},
	}}
}
