// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// readNamespace adds the labels of the namespace of a workload to the facts.
func (r *Round) readNamespace(ctx context.Context, f *Facts) error {
	w := f.WorkloadFacts()
	err := r.c.NamespaceReader().CompleteWorkload(ctx, &w)
	f.namespaceLabels, f.missing = w.NamespaceLabels, w.MissingFacts
	return err
}

// readNamespaces adds the labels of namespaces to the facts of the pods of a cluster-scoped workload.
// It returns the missing fact of each namespace whose labels cannot be facts.
func (r *Round) readNamespaces(ctx context.Context, pods []*corev1.Pod) (missing map[string]decision.MissingFact, err error) {
	all, missing, err := r.namespaceLabels(ctx, pods)
	if err != nil {
		return nil, err
	}
	r.memory.facts.ObserveNamespaces(all)
	return missing, nil
}

// namespaceLabels reads the labels of the namespaces of pods, and returns the missing fact of each namespace
// whose labels are not available.
func (r *Round) namespaceLabels(ctx context.Context, pods []*corev1.Pod) (labels map[string]map[string]string, missing map[string]decision.MissingFact, err error) {
	labels, missing = map[string]map[string]string{}, map[string]decision.MissingFact{}
	reader, seen := r.c.NamespaceReader(), map[string]bool{}
	for _, p := range pods {
		if seen[p.Namespace] {
			continue
		}
		seen[p.Namespace] = true
		found, unknown, err := reader.ReadLabels(ctx, p.Namespace)
		switch {
		case err != nil:
			return nil, missing, fmt.Errorf("reading what policies see of pods: %w", err)
		case unknown != nil:
			missing[p.Namespace] = *unknown
		default:
			labels[p.Namespace] = found
		}
	}
	return labels, missing, nil
}

// holdUnknown returns the hold of a pod some fact of which is missing. A rule that reads the fact could hold the pod.
// It returns nil if no fact is missing, or if no rule of users could hold the pod.
func (r *Round) holdUnknown(subject decision.Subject, pod *corev1.Pod, missing decision.MissingFact) *decision.Hold {
	if missing.Reason == "" || !r.lookedAt(subject) {
		return nil
	}
	if missing.Reason != namespaces.TooLongReason { // an event tells of other labels
		r.RequeueAfter(undecidedAgain)
	}
	h := decision.Hold{Rule: decision.RuleEngine, Reason: missing.Reason, Message: missing.Message}
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
