// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/disruption"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/engine/decision"
)

// readNamespace adds the labels of the namespace of a workload to the facts.
func (r *Round) readNamespace(ctx context.Context, f *Facts) error {
	w := f.WorkloadFacts()
	err := r.c.NamespaceReader().CompleteWorkload(ctx, &w)
	f.namespaceLabels, f.missing = w.NamespaceLabels, w.MissingFacts
	return err
}

// readNamespaces adds the labels of namespaces to the facts of the pods of a cluster-scoped workload, or why they are
// missing.
func (r *Round) readNamespaces(ctx context.Context, pods []*corev1.Pod) error {
	all, missing, err := r.namespaceLabels(ctx, pods)
	if err != nil {
		return err
	}
	r.memory.facts.ObserveNamespaces(all, missing)
	return nil
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

// holdOfMissingFact returns the hold of a pod some fact of which is missing, if a rule of users could hold the pod, and has the
// pod evaluated again.
func (r *Round) holdOfMissingFact(subject decision.Subject, p *facts.Pod) *decision.Hold {
	h := disruption.HoldOfMissingFact(r.c.Engine, subject, p)
	if h != nil && h.Reason != namespaces.TooLongReason { // an event tells of other labels
		r.RequeueAfter(undecidedAgain)
	}
	return h
}

// nameOf returns the name of a pod for messages: with its namespace if the workload has none.
func (f *Facts) nameOf(pod types.NamespacedName) string {
	if f.Subject.Namespace == "" {
		return pod.String()
	}
	return pod.Name
}
