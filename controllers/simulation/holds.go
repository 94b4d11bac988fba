// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/invariant"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// Annotations of a workload that set what HoldRules hold.
const (
	// HoldWhole holds the whole of the update. Its value says which revision new pods get: Current or Update.
	HoldWhole = "holds.test/whole"
	// HoldZone holds the pods of a zone.
	HoldZone = "holds.test/zone"
	// HoldPods holds pods by their names, with spaces between them.
	HoldPods = "holds.test/pods"
	// HoldEach is All if a rule of rollout/rank holds each pod, including pods that are to be created.
	HoldEach = "holds.test/each"
	// HoldFailing is the point that has no answer, because a rule of it fails: Plan or Rank; with OverrideRules Scale or Change too.
	HoldFailing = "holds.test/failing"
	// HoldScale is All if rollout/scale allows no pod to be created or deleted. Only OverrideRules read it.
	HoldScale = "holds.test/scale"
	// HoldChange is the answer of rollout/change for all pods: Wait or Reject. Only OverrideRules read it.
	HoldChange = "holds.test/change"
)

// HoldRules is the policy module with which a test sets and removes holds of workloads by their annotations.
const HoldRules = `package extend.rollout.drawn

import future.keywords.not

annotations := input.workload.annotations

hold contains {"rule": "drawn.whole", "reason": "Whole", "message": "all is held", "newPods": annotations["holds.test/whole"]} if {
	annotations["holds.test/whole"]
}

hold contains {"rule": "drawn.zone", "reason": "Zone", "message": "a zone is held", "where": {"zone": annotations["holds.test/zone"]}} if {
	annotations["holds.test/zone"]
}

hold contains {"rule": "drawn.pods", "reason": "Pods", "message": "a pod is held", "pod": name} if {
	some name in split(annotations["holds.test/pods"], " ")
}

hold contains {"rule": "drawn.each", "reason": "Each", "message": "each pod is held", "pod": pod.name} if {
	annotations["holds.test/each"] == "All"
	some pod in input.pods
}

hold contains {"rule": "drawn.plan", "reason": "Plan", "message": "m"} if {
	annotations["holds.test/failing"] == "Plan"
	input.update != 0
	to_number(input.workload.name) > 1
}

hold contains {"rule": "drawn.rank", "reason": "Rank", "message": "m", "pod": pod.name} if {
	annotations["holds.test/failing"] == "Rank"
	some pod in input.pods
	to_number(pod.name) > 1
}
`

// OverrideRules is a module for use with HoldRules. It replaces two points that no extension can hold.
const OverrideRules = `package override.rollout

import data.rollout
import future.keywords.not

annotations := input.workload.annotations

scale := rollout.scale if {
	not annotations["holds.test/scale"]
	not annotations["holds.test/failing"] == "Scale"
}

scale := object.union(rollout.scale, {"create": 0, "createCurrent": 0, "delete": 0, "deleteCurrent": 0, "keep": [], "planned": "None", "holds": [
	{"rule": "drawn.scale", "reason": "Scale", "message": "scaling is held"},
]}) if {
	annotations["holds.test/scale"]
	not annotations["holds.test/failing"] == "Scale"
}

scale := rollout.scale if {
	annotations["holds.test/failing"] == "Scale"
	to_number(input.workload.name) > 1
}

change := rollout.change if {
	not annotations["holds.test/change"]
	not annotations["holds.test/failing"] == "Change"
}

change := {"action": annotations["holds.test/change"], "reason": "Drawn", "message": "changes are held"} if {
	annotations["holds.test/change"]
	not annotations["holds.test/failing"] == "Change"
}

change := rollout.change if {
	annotations["holds.test/failing"] == "Change"
	to_number(input.workload.name) > 1
}
`

// ActiveHolds are the holds that HoldRules apply to a workload now.
type ActiveHolds map[string]string

// HoldingOf reads the holds from the annotations of a workload.
func HoldingOf(workload client.Object) ActiveHolds { return workload.GetAnnotations() }

// AllPods reports whether every pod is held.
func (h ActiveHolds) AllPods() bool {
	return h[HoldWhole] != "" || h[HoldEach] != "" || h.updateFails()
}

// updateFails reports whether a point that decides which pods are updated fails.
func (h ActiveHolds) updateFails() bool { return h[HoldFailing] == "Plan" || h[HoldFailing] == "Rank" }

// HoldsScaling reports whether no pod may be created, or deleted because it is surplus or its deletion was requested.
func (h ActiveHolds) HoldsScaling() bool { return h[HoldScale] != "" || h[HoldFailing] == "Scale" }

// HoldsChanges reports whether no pod may change from one revision to another.
func (h ActiveHolds) HoldsChanges() bool { return h[HoldChange] != "" || h[HoldFailing] == "Change" }

// HoldsPod reports whether a pod in a zone is held.
func (h ActiveHolds) HoldsPod(name, zone string) bool {
	return h.AllPods() || h[HoldZone] != "" && h[HoldZone] == zone || slices.Contains(strings.Fields(h[HoldPods]), name)
}

// NewPod reports whether a pod that is to be created may not be of the update revision. zone is "" if it is not known.
func (h ActiveHolds) NewPod(name, zone string) bool {
	return h[HoldWhole] == "Current" || h[HoldEach] != "" || h.updateFails() ||
		h[HoldZone] != "" && (zone == "" || h[HoldZone] == zone) || slices.Contains(strings.Fields(h[HoldPods]), name)
}

// holdChecker checks the writes of a controller against the holds.
type holdChecker struct {
	l *Harness
	// begun counts the pods whose recreation at a revision began while they were not held, and whose replacements are not created
	// yet: by revision, and by replacementKey.
	begun map[string]int
}

// replacementKey returns what a pod has in common with its replacement; "" for nothing.
func (h *holdChecker) replacementKey(p *corev1.Pod) string {
	switch typ := h.l.cluster.typ; {
	case typ.NodeOf != nil:
		return typ.NodeOf(p)
	case typ.Ordinals:
		return p.Name
	}
	return ""
}

func (h *holdChecker) newestRevision() string {
	name, number := "", int64(0)
	for _, r := range ListObjects[*appsv1.ControllerRevision](h.l) {
		if r.Revision > number {
			name, number = r.Name, r.Revision
		}
	}
	return name
}

// podZone returns the zone of the node of a pod, as the cache shows both.
func (h *holdChecker) podZone(p *corev1.Pod) string {
	node := p.Spec.NodeName
	if typ := h.l.cluster.typ; typ.NodeOf != nil {
		node = typ.NodeOf(p)
	}
	for _, n := range h.l.cluster.nodes {
		if n.Name == node {
			return n.Labels[corev1.LabelTopologyZone]
		}
	}
	return ""
}

// writeViolation returns which hold a write to a pod violates, "" if none.
func (h *holdChecker) writeViolation(before invariant.Observation, was, now *corev1.Pod) string {
	holding, newest := HoldingOf(h.l.cluster.workload), h.newestRevision()
	if was == nil {
		if holding.HoldsScaling() {
			return fmt.Sprintf("creates pod %s, though scaling is held by %v", now.Name, holding)
		}
		return h.creationViolation(holding, newest, before, now)
	}
	what := h.describeMove(before, was, now)
	if what == "" {
		if holding.HoldsScaling() && isEnding(was, now) {
			return fmt.Sprintf("ends pod %s, though scaling is held by %v", was.Name, holding)
		}
		return ""
	}
	if holding.HoldsChanges() {
		return fmt.Sprintf("%s pod %s, though changes are held by %v", what, was.Name, holding)
	}
	if what != inPlace && !revision.SameHash(was.Labels[rollout.RevisionLabel], newest) {
		h.begun[newest+"/"+h.replacementKey(was)]++
	}
	seen, _ := h.l.cluster.cache.getObject(was).(*corev1.Pod) // if the cache does not have the pod, the controller cannot know its zone
	if seen != nil && holding.HoldsPod(was.Name, h.podZone(seen)) {
		return fmt.Sprintf("%s pod %s, which is held by %v", what, was.Name, holding)
	}
	return ""
}

// isEnding reports whether a write deletes a pod, or begins to prepare its deletion.
func isEnding(was, now *corev1.Pod) bool {
	if was.DeletionTimestamp != nil {
		return false
	}
	return now == nil || now.DeletionTimestamp != nil || lifecycle.PodState(now) == kruise.LifecycleStatePreparingDelete && lifecycle.PodState(was) != kruise.LifecycleStatePreparingDelete
}

const inPlace = "changes in place"

// describeMove returns how a write begins to move a pod to another revision, "" if it does not.
func (h *holdChecker) describeMove(before invariant.Observation, was, now *corev1.Pod) string {
	c := h.l.cluster
	if rollout.IsInactive(was) || c.kind.DeletionAsked(c.workload, was) || lifecycle.PodState(was) == kruise.LifecycleStatePreparingDelete || h.isSurplus(before, was) {
		return ""
	}
	_, marked := was.Labels[kruise.SpecifiedDeleteKey]
	switch {
	case now == nil || now.DeletionTimestamp != nil:
		return "deletes"
	case !marked && now.Labels[kruise.SpecifiedDeleteKey] != "":
		return "marks for deletion"
	case lifecycle.PodState(now) == kruise.LifecycleStatePreparingDelete:
		return "prepares the deletion of"
	case lifecycle.PodState(now) == kruise.LifecycleStatePreparingUpdate && lifecycle.PodState(was) != kruise.LifecycleStatePreparingUpdate,
		was.Labels[rollout.RevisionLabel] != now.Labels[rollout.RevisionLabel]:
		return inPlace
	}
	return ""
}

// isSurplus reports whether a pod may be deleted because it is surplus: holds of an update do not apply to it.
func (h *holdChecker) isSurplus(before invariant.Observation, p *corev1.Pod) bool {
	c := h.l.cluster
	if c.typ.NodeOf == nil {
		wanter, picky := c.kind.(invariant.KindWithWantedPods)
		if picky {
			return !wanter.WantsPod(c.workload, p)
		}
		return before.Active > c.workloadSpec().Replicas
	}
	node := c.typ.NodeOf(p)
	for _, other := range c.sortedPods() {
		if other.UID != p.UID && !rollout.IsInactive(other) && h.isSelected(other) && c.typ.NodeOf(other) == node {
			return true
		}
	}
	return !slices.ContainsFunc(ListObjects[*corev1.Node](h.l), func(n *corev1.Node) bool {
		return n.Name == node && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
	})
}

// creationViolation returns which hold the creation of a pod violates.
func (h *holdChecker) creationViolation(holding ActiveHolds, newest string, before invariant.Observation, p *corev1.Pod) string {
	c := h.l.cluster
	if !revision.SameHash(p.Labels[rollout.RevisionLabel], newest) {
		return ""
	}
	key := newest + "/" + h.replacementKey(p)
	if h.begun[key] > 0 {
		h.begun[key]--
		return ""
	}
	spec, zone := c.workloadSpec(), h.podZone(p)
	if before.Single || before.Updated > spec.Replicas-spec.Strategy.Partition || !holding.NewPod(p.Name, zone) && !h.nodeHasHeldPod(holding, p) {
		return ""
	}
	if c.typ.NodeOf == nil && spec.Strategy.MaxSurge > 0 && h.hasMovablePod(holding, newest) {
		return "" // the pod may be the surge of another pod
	}
	return fmt.Sprintf("creates pod %s at revision %s, which is held by %v", p.Name, newest, holding)
}

// isSelected reports whether the workload selects a pod. A pod whose labels were changed does not belong to it any more.
func (h *holdChecker) isSelected(p *corev1.Pod) bool {
	selector := h.l.cluster.workloadSpec().Selector
	return selector == nil || selector.Matches(labels.Set(p.Labels))
}

// nodeHasHeldPod reports whether a held pod exists on the node of a new pod.
func (h *holdChecker) nodeHasHeldPod(holding ActiveHolds, p *corev1.Pod) bool {
	c := h.l.cluster
	return c.typ.NodeOf != nil && slices.ContainsFunc(c.sortedPods(), func(other *corev1.Pod) bool {
		return other.UID != p.UID && !rollout.IsInactive(other) && h.isSelected(other) && c.typ.NodeOf(other) == c.typ.NodeOf(p) && holding.HoldsPod(other.Name, h.podZone(other))
	})
}

// hasMovablePod reports whether there is a pod that no hold prevents from being moved.
func (h *holdChecker) hasMovablePod(holding ActiveHolds, newest string) bool {
	return slices.ContainsFunc(h.l.cluster.sortedPods(), func(p *corev1.Pod) bool {
		seen, _ := h.l.cluster.cache.getObject(p).(*corev1.Pod)
		return !rollout.IsInactive(p) && !revision.SameHash(p.Labels[rollout.RevisionLabel], newest) && (seen == nil || !holding.HoldsPod(p.Name, h.podZone(seen)))
	})
}
