// SPDX-License-Identifier: Apache-2.0

package workload

// A Group is what is measured together.
type Group struct {
	Name string
	// Kinds are in the order in which they are measured, yardsticks first.
	Kinds []Kind
	// Pods and Nodes are how many there are unless the caller says otherwise.
	Pods, Nodes int
	// Workloads, if any, is how many there are at once, with Pods each.
	Workloads int
}

const (
	fewNodes  = 40
	manyNodes = 1000
	manyPods  = 1000
)

// Groups are all there are.
func Groups() []Group {
	return []Group{
		{Name: "both", Kinds: []Kind{Deployment(), CloneSet()}, Pods: manyPods, Nodes: fewNodes},
		{Name: "cloneset", Kinds: []Kind{CloneSet()}, Pods: manyPods, Nodes: fewNodes},
		{Name: "deployment", Kinds: []Kind{Deployment()}, Pods: manyPods, Nodes: fewNodes},
		{Name: "statefulset", Kinds: []Kind{StatefulSet(), AdvancedStatefulSet()}, Pods: manyPods, Nodes: fewNodes},
		{Name: "daemonset", Kinds: []Kind{DaemonSet(), AdvancedDaemonSet(), BroadcastJob()}, Nodes: manyNodes},
		{Name: "sidecarset", Kinds: []Kind{Pods(), SidecarSet()}, Pods: manyPods, Nodes: fewNodes},
		{Name: "uniteddeployment", Kinds: []Kind{UnitedDeployment()}, Pods: manyPods, Nodes: 100, Workloads: 10},
		{Name: "workloadspread", Kinds: []Kind{Recreated(), Spread()}, Pods: 5 * manyPods, Nodes: 60},
	}
}
