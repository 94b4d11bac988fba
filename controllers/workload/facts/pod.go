// SPDX-License-Identifier: Apache-2.0

// Package facts turns pods into the short facts that policies read. The facts
// of a pod are kept until the pod changes, so that a round of a
// large workload computes only what changed.
package facts

import (
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/rank"
)

// Pod is a pod with its facts.
type Pod struct {
	*corev1.Pod
	State kruise.LifecycleStateType
	// Ready is readiness by CS-02 without a minimum time; ReadySince is when the pod became ready.
	Ready      bool
	ReadySince time.Time
	// InPlaceDone is false while an in-place update of the pod runs.
	InPlaceDone bool
	// Facts and Hash depend on the current revisions of the workload.
	Facts rollout.PodFacts
	Hash  uint64

	updated bool
}

// Key is the name of the pod with its namespace. It is unique among the pods of a workload.
func (p *Pod) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// IsAvailable reports availability by CS-02: the state is Normal or none, and the pod has been ready for minReady. A pod
// whose in-place update has not completed is not available, with or without
// the readiness gate. If minReady is positive, a pod without the time of its readiness is not
// available.
func (p *Pod) IsAvailable(minReady time.Duration, now time.Time) bool {
	if !p.Ready || !p.InPlaceDone || (p.State != "" && p.State != kruise.LifecycleStateNormal) {
		return false
	}
	return minReady <= 0 || (!p.ReadySince.IsZero() && !now.Before(p.ReadySince.Add(minReady)))
}

// podReadiness reports readiness: running, Ready, and InPlaceUpdateReady absent or True.
func podReadiness(pod *corev1.Pod) (bool, time.Time) {
	c := inplace.FindCondition(pod, corev1.PodReady)
	if pod.Status.Phase != corev1.PodRunning || c == nil || c.Status != corev1.ConditionTrue {
		return false, time.Time{}
	}
	if g := inplace.FindCondition(pod, kruise.InPlaceUpdateReady); g != nil && g.Status != corev1.ConditionTrue {
		return false, time.Time{}
	}
	return true, c.LastTransitionTime.Time
}

// phaseOrder is the position of a phase by A-13; other phases sort first.
func phaseOrder(p corev1.PodPhase) int {
	switch p {
	case corev1.PodUnknown:
		return 1
	case corev1.PodRunning:
		return 2
	}
	return 0
}

func unixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return rollout.MaxTime
	}
	return t.Unix()
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func maxRestarts(pod *corev1.Pod) int {
	most := int32(0)
	for i := range pod.Status.ContainerStatuses {
		most = max(most, pod.Status.ContainerStatuses[i].RestartCount)
	}
	return int(most)
}

// deletionCost reads controller.kubernetes.io/pod-deletion-cost: an int32
// without a plus sign or leading zeros, else 0 (CS-07).
func deletionCost(pod *corev1.Pod) int {
	v, ok := pod.Annotations[corev1.PodDeletionCost]
	if !ok || v == "" || v[0] == '+' || (v[0] == '0' && v != "0") || (len(v) > 1 && v[0] == '-' && v[1] == '0') {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

func (s *Set) buildPod(pod *corev1.Pod, updated bool, terms Terms, topology *Topology) *Pod {
	// All pods of a list are in one array, which would stay in
	// memory for as long as any pod of it is kept: a megabyte for each round.
	own := *pod
	pod = &own
	p := &Pod{Pod: pod, State: lifecycle.PodState(pod), InPlaceDone: inplace.IncompleteReason(pod) == "", updated: updated}
	p.Ready, p.ReadySince = podReadiness(pod)
	node := s.podNode(pod)
	place := topology.NodePlace(node)
	p.Facts = rollout.PodFacts{
		Name: pod.Name, Namespace: pod.Namespace, NamespacedName: pod.Namespace + "/" + pod.Name,
		Labels: policyLabels(pod.Labels), Node: node, Zone: place.Zone, Region: place.Region,
		Updated: updated, State: string(p.State),
		Assigned: boolToInt(pod.Spec.NodeName != ""), Phase: phaseOrder(pod.Status.Phase), Ready: boolToInt(p.Ready),
		Created: unixSeconds(pod.CreationTimestamp.Time), Restarts: maxRestarts(pod), DeletionCost: deletionCost(pod),
	}
	if p.Ready {
		p.Facts.ReadySince = unixSeconds(p.ReadySince)
	}
	if n, ok := PodOrdinal(pod.Name); ok && s.ordinals {
		p.Facts.Ordinal = &n
	}
	if node != "" {
		p.Facts.OnNode = topology.NodeFacts(node)
		if p.Facts.OnNode == nil {
			p.Facts.MissingFacts = append(p.Facts.MissingFacts, missingNode(node))
		}
	}
	if in := s.namespaces[pod.Namespace]; in != nil {
		p.Facts.NamespaceLabels = in.labels
		if in.missing != nil {
			p.Facts.MissingFacts = append(p.Facts.MissingFacts, *in.missing)
		}
	}
	p.Facts.Matches = terms.matchingSelectors(pod.Labels)
	p.Facts.OrderLevel, p.Facts.OrderValue = terms.orderPriority(pod.Labels)
	return p
}

// policyLabels leaves out the labels that the controller itself writes, so that moving a
// pod does not change its facts twice.
func policyLabels(all map[string]string) map[string]string {
	out := make(map[string]string, len(all))
	for k, v := range all {
		switch k {
		case "controller-revision-hash", "pod-template-hash", kruise.CloneSetInstanceIDKey, kruise.LifecycleStateKey:
		default:
			out[k] = v
		}
	}
	return out
}

// Set keeps the pods of one workload between reconciles.
type Set struct {
	seed     maphash.Seed
	ordinals bool
	nodeOf   func(*corev1.Pod) string
	pods     map[types.UID]*entry
	// namespaces are the namespaces of the pods of a cluster-scoped workload.
	namespaces map[string]*namespace
	// terms and topology are those that the facts were built with.
	terms    Terms
	topology uint64
}

type entry struct {
	pod  *Pod
	in   *namespace // whose labels are in the facts
	seen bool
}

// NewSet makes an empty Set.
func NewSet(opts ...Option) *Set {
	s := &Set{seed: maphash.MakeSeed(), pods: map[types.UID]*entry{}}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Option changes a Set.
type Option func(*Set)

// WithOrdinals adds ordinals to the facts of pods, for a kind that numbers its pods.
func WithOrdinals(yes bool) Option { return func(s *Set) { s.ordinals = yes } }

// WithNodes is for a kind that puts a pod on each node. The function returns the name of the node, also for a pod that
// is not scheduled yet. If it is nil, a pod has the node that it is scheduled to.
func WithNodes(of func(*corev1.Pod) string) Option { return func(s *Set) { s.nodeOf = of } }

func (s *Set) podNode(pod *corev1.Pod) string {
	if s.nodeOf == nil {
		return pod.Spec.NodeName
	}
	return s.nodeOf(pod)
}

// PodOrdinal is the number at the end of a pod's name, after a dash (ASTS-02).
func PodOrdinal(name string) (int, bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i+1 == len(name) || strings.TrimLeft(name[i+1:], "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	return int(n), err == nil
}

// Update returns pods with their facts. It reuses the facts of pods whose resource version
// has not changed. updated reports whether a pod is at the
// update revision. Pods that are not passed any more are forgotten.
func (s *Set) Update(pods []*corev1.Pod, terms Terms, topology *Topology, updated func(*corev1.Pod) bool) []*Pod {
	if v := topology.Version(); v != s.topology || !terms.isEqual(s.terms) {
		s.pods, s.topology, s.terms = map[types.UID]*entry{}, v, terms
	}
	out := make([]*Pod, len(pods))
	for i, pod := range pods {
		isUpdated := updated(pod)
		e := s.pods[pod.UID]
		in := s.namespaces[pod.Namespace]
		if e == nil || e.in != in || e.pod.ResourceVersion != pod.ResourceVersion || e.pod.updated != isUpdated || e.pod.Facts.OnNode != topology.NodeFacts(e.pod.Facts.Node) {
			p := s.buildPod(pod, isUpdated, terms, topology)
			if e != nil && p.Facts.OnNode == nil && e.pod.Facts.Node == p.Facts.Node { // a node that is gone stays where it was
				p.Facts.Zone, p.Facts.Region = e.pod.Facts.Zone, e.pod.Facts.Region
			}
			p.Hash = rank.HashFacts(s.seed, &p.Facts)
			e = &entry{pod: p, in: in}
			s.pods[pod.UID] = e
		}
		e.seen = true
		out[i] = e.pod
	}
	for uid, e := range s.pods {
		if !e.seen {
			delete(s.pods, uid)
		}
		e.seen = false
	}
	return out
}
