// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// fleet are the nodes of a cluster as one DaemonSet sees them.
type fleet struct {
	nodes map[string]*node
	// wanted is how many of the nodes should run a pod.
	wanted int
}

// node is a node, and whether it should run a pod and may go on running one (ADS-01).
type node struct {
	*corev1.Node
	run, stay bool
}

func newFleet(template *corev1.PodSpec, nodes []corev1.Node) (*fleet, error) {
	fit, err := nodefit.NewRequirements(template, nodefit.WithTolerations(nodefit.DaemonTolerations(template.HostNetwork)...))
	if err != nil {
		return nil, err
	}
	f := &fleet{nodes: make(map[string]*node, len(nodes))}
	for i := range nodes {
		verdict := fit.EvaluateNode(&nodes[i])
		f.nodes[nodes[i].Name] = &node{&nodes[i], verdict.Start, verdict.Stay}
		incrementIf(&f.wanted, verdict.Start)
	}
	return f, nil
}

// site is a node with its pods, oldest first.
type site struct {
	name string
	node *node // nil if no node has the name
	// pods are active, gone are finished or terminating.
	pods []*facts.Pod
	gone []*corev1.Pod
}

// buildSites returns all nodes, and all names of nodes in pods, sorted by name. Pods that name no node are left out.
func buildSites(f *rollout.Facts) []*site {
	found := f.Found.(*fleet)
	at := make(map[string]*site, len(found.nodes))
	for name, n := range found.nodes {
		at[name] = &site{name: name, node: n}
	}
	of := func(pod *corev1.Pod) *site {
		name := nodefit.NodeOf(pod)
		s := at[name]
		if s == nil {
			s = &site{name: name}
			if name != "" {
				at[name] = s
			}
		}
		return s
	}
	for _, p := range f.Pods {
		s := of(p.Pod)
		s.pods = append(s.pods, p)
	}
	for _, p := range f.Gone {
		s := of(p)
		s.gone = append(s.gone, p)
	}
	out := make([]*site, 0, len(at))
	for _, s := range at {
		slices.SortFunc(s.pods, func(a, b *facts.Pod) int { return compareAge(a.Pod, b.Pod) })
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *site) int { return strings.Compare(a.name, b.name) })
	return out
}

// compareAge sorts by the time of creation, oldest first, and then by name.
func compareAge(a, b *corev1.Pod) int {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return strings.Compare(a.Name, b.Name)
}

func (s *site) shouldRun() bool { return s.node != nil && s.node.run }
func (s *site) mayStay() bool   { return s.node != nil && s.node.stay }

// runningPods are the active pods, updated or not, that do not prepare their deletion.
func (s *site) runningPods(updated bool) (out []*facts.Pod) {
	for _, p := range s.pods {
		if p.State != kruise.LifecycleStatePreparingDelete && p.Facts.Updated == updated {
			out = append(out, p)
		}
	}
	return out
}
