// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Reasons of holds of pods whose namespace labels are not available to policies. A rule that reads
// these labels could hold the pods.
const (
	// NamespaceUnknownReason is the reason of pods whose namespace the cache does not show yet.
	NamespaceUnknownReason = "NamespaceUnknown"
	// NamespaceLabelsReason is the reason of pods whose namespace has labels of more than facts.MaxNamespaceLabels bytes.
	NamespaceLabelsReason = "NamespaceLabelsTooLong"
)

// readNamespaces adds the labels of namespaces to the facts of the pods of a cluster-scoped workload.
// It returns the reason for each namespace whose labels cannot be facts.
func (r *Round) readNamespaces(ctx context.Context, guest KindWithSharedPods, pods []*corev1.Pod) (unknown map[string]string, err error) {
	all, unknown, err := namespaceLabels(ctx, guest, pods)
	if err != nil {
		return nil, err
	}
	r.memory.facts.ObserveNamespaces(all)
	return unknown, nil
}

// namespaceLabels reads the labels of the namespaces of pods, and returns the reason for each namespace
// whose labels are not available.
func namespaceLabels(ctx context.Context, guest KindWithSharedPods, pods []*corev1.Pod) (labels map[string]map[string]string, unknown map[string]string, err error) {
	var names []string
	seen := map[string]bool{}
	for _, p := range pods {
		if !seen[p.Namespace] {
			seen[p.Namespace], names = true, append(names, p.Namespace)
		}
	}
	if labels, err = guest.NamespaceLabels(ctx, names); err != nil {
		return nil, map[string]string{}, fmt.Errorf("reading the labels of namespaces: %w", err)
	}
	unknown = map[string]string{}
	for _, name := range names {
		all, there := labels[name]
		bytes := 0
		for key, value := range all {
			bytes += len(key) + len(value)
		}
		switch {
		case !there:
			unknown[name] = NamespaceUnknownReason
		case bytes > facts.MaxNamespaceLabels:
			unknown[name] = NamespaceLabelsReason
			delete(labels, name)
		}
	}
	return labels, unknown, nil
}

// holdUnknown returns the hold of a pod whose namespace labels are not available, for a reason.
// It returns nil if there is no reason, or if no rule of users could hold the pod.
func (r *Round) holdUnknown(subject decision.Subject, pod *corev1.Pod, reason string) *decision.Hold {
	if reason == "" || !r.lookedAt(subject) {
		return nil
	}
	h := decision.Hold{Rule: decision.RuleEngine, Reason: reason}
	switch reason {
	case NamespaceLabelsReason:
		h.Message = fmt.Sprintf("The labels of namespace %s have more than %d bytes, so policies cannot be told them, and one may hold its pods. Take labels off the namespace.",
			pod.Namespace, facts.MaxNamespaceLabels)
	default:
		h.Message = fmt.Sprintf("Namespace %s is not known yet, so policies cannot be told its labels, and one may hold its pods; it is looked up again.", pod.Namespace)
		r.RequeueAfter(undecidedAgain)
	}
	h = h.OfPod(pod.Namespace, pod.Name)
	return &h
}

// lookedAt reports whether rules of users evaluate the pods of a workload one by one.
func (r *Round) lookedAt(subject decision.Subject) bool {
	s := r.c.Engine.ActiveSnapshot()
	return s.IsPointExtended(points.RankPoint().Name, subject) || s.IsPointReplaced(points.RankPoint().Name, subject) || s.IsPointDefined(points.RowsPoint().Name, subject)
}

// nameOf returns the name of a pod for messages: with its namespace if the workload has none.
func (f *Facts) nameOf(pod types.NamespacedName) string {
	if f.Subject.Namespace == "" {
		return pod.String()
	}
	return pod.Name
}
