// SPDX-License-Identifier: Apache-2.0

package workload

// DaemonSet is a native DaemonSet that replaces pods within maxUnavailable, the
// yardstick of an Advanced one.
func DaemonSet() Kind {
	k := daemonSet(map[string]any{"maxUnavailable": MaxUnavailable})
	k.Name = "DaemonSet"
	k.Controllers = []string{"daemon-set-controller"}
	k.Main.Resource = native("daemonsets")
	k.Updates = []Update{update(Recreate, image(10))}
	return k
}

// AdvancedDaemonSet is an Advanced DaemonSet in v1alpha1. What it costs while the
// nodes are idle is measured too.
func AdvancedDaemonSet() Kind {
	k := daemonSet(map[string]any{"maxUnavailable": MaxUnavailable, "rollingUpdateType": "InPlaceIfPossible"})
	k.Name = "Advanced DaemonSet"
	k.Yardstick = DaemonSet().Name
	k.Reconciler = "daemonset-controller"
	k.Idles = true
	k.Main.Resource = kruise("v1alpha1", "daemonsets")
	k.Updates = []Update{
		update(InPlace, image(9)),
		update(Recreate, image(10), operation{"replace", "/spec/updateStrategy/rollingUpdate/rollingUpdateType", "Standard"}),
	}
	return k
}

// daemonSet is what both kinds have in common.
func daemonSet(rollingUpdate map[string]any) Kind {
	return Kind{First: firstImage(), PerNode: true, Main: Part{
		kind: "DaemonSet",
		spec: func(s Shape) map[string]any {
			return map[string]any{
				"selector": selector(s), "template": template(s),
				"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": rollingUpdate},
			}
		},
		reached: func(s status, pods int) bool {
			return s.all(pods, "desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable")
		},
	}}
}

// BroadcastJob is a BroadcastJob in v1alpha1 that runs on all nodes at once. Its pods
// end by themselves: nodes that are simulated have pods of jobs complete, others run
// the image, which has to end then.
func BroadcastJob() Kind {
	return Kind{
		Name:       "BroadcastJob",
		First:      firstImage(),
		Reconciler: "broadcastjob-controller",
		PerNode:    true,
		Ends:       true,
		Main: Part{
			Resource:    kruise("v1alpha1", "broadcastjobs"),
			kind:        "BroadcastJob",
			ungenerated: true,
			spec: func(s Shape) map[string]any {
				made := template(s)
				made["spec"].(map[string]any)["restartPolicy"] = "Never"
				return map[string]any{"template": made, "completionPolicy": map[string]any{"type": "Always"}}
			},
			reached: func(s status, pods int) bool {
				return s.all(pods, "desired", "succeeded") && s["phase"] == "completed"
			},
		},
	}
}
