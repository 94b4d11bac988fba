// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// none is the index of pods that are in no subset.
const none = -1

// patience is how long pods of a subset may find no node before the condition reports it.
const patience = kruise.DefaultRescheduleCriticalSeconds * time.Second

// classifyPods finds the subset of each pod. It returns the writes that mark pods from before the spread (WS-05). These pods count in their
// subsets whether they can be marked or not.
func (t *reconcileRound) classifyPods(ctx context.Context) (marks []func() error, err error) {
	have := make([]int, len(t.w.Spec.Subsets))
	var unmarked []*corev1.Pod
	for _, pod := range t.pods {
		t.part[pod.UID] = none
		m := spread.MarkOf(pod)
		if m == nil || m.Name != t.w.Name {
			unmarked = append(unmarked, pod)
			continue
		}
		i := t.subsetIndex(m.Subset)
		t.part[pod.UID] = i
		if i == none {
			t.unknown[m.Subset]++
		} else if availability.IsActive(pod) {
			have[i]++
		}
	}
	for _, pod := range unmarked {
		if pod.Spec.NodeName == "" || !availability.IsActive(pod) {
			continue
		}
		node := &corev1.Node{}
		err := t.r.Client.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, node)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading node %s: %w", pod.Spec.NodeName, err)
		}
		if err != nil {
			continue
		}
		i := t.bestSubset(pod, node, have)
		if i == none {
			continue
		}
		have[i]++
		t.part[pod.UID] = i
		marks = append(marks, func() error { return t.annotatePod(ctx, pod, i) })
	}
	return marks, nil
}

func (t *reconcileRound) subsetIndex(name string) int {
	for i := range t.w.Spec.Subsets {
		if t.w.Spec.Subsets[i].Name == name {
			return i
		}
	}
	return none
}

// bestSubset returns the subset that fits a pod on a node best.
func (t *reconcileRound) bestSubset(pod *corev1.Pod, node *corev1.Node, have []int) int {
	best, most := none, 0
	for i := range t.w.Spec.Subsets {
		if score, fits := t.scoreSubset(pod, node, i, have[i]); fits && (best == none || score > most) {
			best, most = i, score
		}
	}
	return best
}

// scoreSubset returns how well a subset fits a pod on a node, and whether it fits at all.
func (t *reconcileRound) scoreSubset(pod *corev1.Pod, node *corev1.Node, i, have int) (score int, fits bool) {
	part := &t.w.Spec.Subsets[i]
	spec := pod.Spec.DeepCopy()
	spec.NodeName = ""
	spec.Tolerations = append(spec.Tolerations, part.Tolerations...)
	if part.RequiredNodeSelector != nil {
		subset.AddNodeTerm(spec, *part.RequiredNodeSelector)
	}
	needs, err := nodefit.NewRequirements(spec)
	if err != nil || !needs.EvaluateNode(node).Start && !mayKeepRunning(needs.EvaluateNode(node)) {
		return 0, false
	}
	if terms, err := nodeaffinity.NewPreferredSchedulingTerms(part.PreferredNodeSelector); err == nil {
		score += 100 * int(terms.Score(node))
	}
	if patched, err := subset.ApplyPatch(pod, part.Patch.Raw); err == nil {
		patched.Annotations = pod.Annotations
		if equality.Semantic.DeepEqual(patched, pod) {
			score += 10
		}
	}
	if t.limits[i] == nil || have < *t.limits[i] {
		score++
	}
	return score, true
}

// mayKeepRunning is true for a node that takes no new pods, such as a cordoned one, because the pod runs
// there already.
func mayKeepRunning(v nodefit.Verdict) bool { return v.Stay && v.Reason == nodefit.Tainted }

// annotatePod records the subset of a pod, and applies the metadata in the patch of the subset.
func (t *reconcileRound) annotatePod(ctx context.Context, pod *corev1.Pod, i int) error {
	part := &t.w.Spec.Subsets[i]
	changed := pod.DeepCopy()
	if t.w.Annotations[kruise.WorkloadSpreadIgnoreExistingPodsKey] != "true" {
		if patched, err := subset.ApplyPatch(changed, part.Patch.Raw); err == nil {
			changed.Labels, changed.Annotations = patched.Labels, patched.Annotations
		}
	}
	text, err := json.Marshal(spread.Mark{Name: t.w.Name, Subset: part.Name})
	if err != nil {
		return fmt.Errorf("marking pod %s: %w", pod.Name, err)
	}
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, kruise.MatchedWorkloadSpreadKey, string(text))
	if err := t.r.Client.Patch(ctx, changed, client.MergeFrom(pod)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("marking pod %s: %w", pod.Name, err)
	}
	return nil
}

// findWaitingSubsets finds the subsets that select no node and whose pods all wait for one, and the subsets whose
// pods have waited for long.
func (t *reconcileRound) findWaitingSubsets(ctx context.Context) error {
	waits, runs := make([]int, len(t.w.Spec.Subsets)), make([]bool, len(t.w.Spec.Subsets))
	late := make([]int, len(t.w.Spec.Subsets))
	for _, pod := range t.pods {
		i := t.part[pod.UID]
		if i == none || !availability.IsActive(pod) {
			continue
		}
		if pod.Spec.NodeName != "" {
			runs[i] = true
			continue
		}
		waits[i]++
		if stuck, again := subset.IsUnschedulable(pod, patience, t.now); stuck {
			late[i]++
		} else if again > 0 {
			t.requeueWithin(max(again, subset.Unhurried))
		}
	}
	for i := range t.w.Spec.Subsets {
		part := &t.w.Spec.Subsets[i]
		if part.RequiredNodeSelector != nil && waits[i] > 0 && !runs[i] {
			nowhere, err := subset.MatchesNoNode(ctx, t.r.Client, *part.RequiredNodeSelector)
			if err != nil {
				return err
			}
			if nowhere {
				t.nowhere = append(t.nowhere, part.Name)
				continue
			}
		}
		if late[i] > 0 {
			t.late = append(t.late, fmt.Sprintf("%s (%d)", part.Name, late[i]))
		}
	}
	return nil
}
