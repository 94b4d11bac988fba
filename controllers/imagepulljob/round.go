// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// phase is the progress of a node in a job (IMG-02).
type phase int

const (
	waiting phase = iota
	pulling
	succeeded
	failed
)

// phaseOf is IMG-02.
func phaseOf(node *kruise.NodeImage, job *kruise.ImagePullJob, i tags.Image, secrets []kruise.ReferenceObject) phase {
	spec := node.Spec.Images[i.Name]
	tag := tags.FindSpec(spec, i.Tag)
	if tag == nil || !isOwnedBy(tag, job.UID) || len(missingSecrets(spec.PullSecrets, secrets)) > 0 || failedTooSoon(node, i.Name, tag, job) {
		return waiting
	}
	switch s := tags.Status(node, i.Name, tag); {
	case s == nil:
		return pulling
	case s.Phase == kruise.ImagePhaseSucceeded:
		return succeeded
	case s.Phase == kruise.ImagePhaseFailed:
		return failed
	}
	return pulling
}

func isOwnedBy(tag *kruise.ImageTagSpec, job types.UID) bool {
	return slices.ContainsFunc(tag.OwnerReferences, func(o corev1.ObjectReference) bool { return o.UID == job })
}

// missingSecrets returns the secrets that a list does not have.
func missingSecrets(list, of []kruise.ReferenceObject) (out []kruise.ReferenceObject) {
	for _, s := range of {
		if !slices.ContainsFunc(list, func(have kruise.ReferenceObject) bool { return have.Namespace == s.Namespace && have.Name == s.Name }) {
			out = append(out, s)
		}
	}
	return out
}

// candidate is a node that waits.
type candidate struct {
	node *kruise.NodeImage
	points.Candidate
	place
}

// tally is the progress of the nodes of a job.
type tally struct {
	points.Nodes
	groups     map[string]map[string]points.Nodes
	registry   points.Registry
	candidates []candidate
	failed     []string // names of the nodes that failed
	unended    []string // names of the nodes that have not ended
	denied     *points.Denial
	faults     []string // of pull secrets
	// asked are the nodes that were asked for the image before this reconcile.
	asked []*kruise.NodeImage
}

// groupsOf returns the groups of a node, such as its zone, by the labels of the node that its NodeImage has.
func groupsOf(node *kruise.NodeImage) map[string]string {
	return map[string]string{"zone": node.Labels[corev1.LabelTopologyZone], "region": node.Labels[corev1.LabelTopologyRegion]}
}

// countNodes makes the tally of a job: nodes are the nodes that the job covers.
func countNodes(fleet, nodes []*kruise.NodeImage, job *kruise.ImagePullJob, i tags.Image, secrets []kruise.ReferenceObject) *tally {
	t := &tally{groups: map[string]map[string]points.Nodes{"zone": {}, "region": {}}, registry: points.Registry{Name: i.Registry}}
	for _, node := range nodes {
		one := points.Nodes{Total: 1}
		phase := phaseOf(node, job, i, secrets)
		if phase != waiting {
			t.asked = append(t.asked, node)
		}
		switch phase {
		case waiting:
			one.Waiting = 1
			t.unended = append(t.unended, node.Name)
			t.candidates = append(t.candidates, candidate{node: node, Candidate: points.Candidate{Name: node.Name, Groups: groupsOf(node)}})
		case pulling:
			one.Pulling = 1
			t.unended = append(t.unended, node.Name)
		case succeeded:
			one.Succeeded = 1
		case failed:
			one.Failed = 1
			t.failed = append(t.failed, node.Name)
		}
		t.addCounts(node, one)
	}
	registries := map[string]string{}
	for _, node := range fleet {
		busy := 0
		for name, spec := range node.Spec.Images {
			for j := range spec.Tags {
				s := tags.Status(node, name, &spec.Tags[j])
				if s != nil && (s.Phase == kruise.ImagePhaseSucceeded || s.Phase == kruise.ImagePhaseFailed) {
					continue
				}
				busy = 1
				registry, ok := registries[name]
				if !ok {
					image, _ := tags.ParseImage(name) // an invalid name has no registry
					registry = image.Registry
					registries[name] = registry
				}
				if registry == i.Registry {
					t.registry.Pulling++
				}
			}
		}
		if busy > 0 {
			t.addCounts(node, points.Nodes{Busy: 1})
		}
	}
	return t
}

// addCounts counts a node in the tally and in its groups. A zone without a node of the job has
// no entry.
func (t *tally) addCounts(node *kruise.NodeImage, one points.Nodes) {
	addNodeCounts(&t.Nodes, one)
	for dimension, value := range groupsOf(node) {
		group, ok := t.groups[dimension][value]
		if !ok && one.Total == 0 {
			continue
		}
		addNodeCounts(&group, one)
		t.groups[dimension][value] = group
	}
}

// markFailed moves a node that waited to those that failed.
func (t *tally) markFailed(c *candidate, why *points.Denial) {
	t.addCounts(c.node, points.Nodes{Waiting: -1, Failed: 1, Total: 0})
	t.failed = append(t.failed, c.Name)
	if t.denied == nil {
		t.denied = why
	}
}

// markPulling moves a node that waited to those that pull.
func (t *tally) markPulling(c *candidate) { t.addCounts(c.node, points.Nodes{Waiting: -1, Pulling: 1}) }

func addNodeCounts(a *points.Nodes, b points.Nodes) {
	a.Total += b.Total
	a.Waiting += b.Waiting
	a.Pulling += b.Pulling
	a.Succeeded += b.Succeeded
	a.Failed += b.Failed
	a.Busy += b.Busy
}
