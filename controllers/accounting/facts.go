// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// buildInput is what a question is decided by. own says that this ledger has recorded this very pod.
func (l *Accountant) buildInput(q Request, budget *policy.PodUnavailableBudget, own bool) protection.BudgetInput {
	in := protection.BudgetInput{
		Now: l.now().UnixNano(), Request: q.Asked.Request, Object: q.Asked.Object, Recent: q.Recent,
		Pod: availability.PodState(q.Pod), ResizeIsUpdate: l.resizeIsUpdate,
	}
	if budget != nil {
		in.Budget = budgetFacts(budget, q.Pod, own)
	}
	return in
}

func budgetFacts(b *policy.PodUnavailableBudget, pod *corev1.Pod, own bool) *protection.Budget {
	s := &b.Status
	out := &protection.Budget{
		Name: b.Name, Operations: protectedOperations(b), Ignored: ignoresPod(b, pod),
		Desired: int(s.DesiredAvailable), Current: int(s.CurrentAvailable), Allowed: int(s.UnavailableAllowed), Total: int(s.TotalReplicas),
		Recorded: recordListName(s, pod, own), Records: len(s.DisruptedPods) + len(s.UnavailablePods),
	}
	if v := b.Spec.MaxUnavailable; v != nil {
		out.MaxUnavailable = v.String()
	}
	if v := b.Spec.MinAvailable; v != nil {
		out.MinAvailable = v.String()
	}
	return out
}

// protectedOperations are those that the budget names, in the field or in the annotation of
// earlier versions.
func protectedOperations(b *policy.PodUnavailableBudget) (out []string) {
	for _, op := range b.Spec.ProtectOperations {
		out = append(out, string(op))
	}
	if len(out) > 0 {
		return out
	}
	for word := range strings.SplitSeq(b.Annotations[policyv1alpha1.BudgetProtectOperationsKey], ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}

// ignoresPod is false for a selector that cannot be read: then the pod is protected.
func ignoresPod(b *policy.PodUnavailableBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.IgnoredPodSelector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels))
}

// Skew is by how much the clocks of the manager and the API server may differ
// before a record is taken for that of another pod of the same name.
const Skew = 2 * time.Second

// recordListName is the list that has this pod: one of the same name that came after the
// record is another. Times are in whole seconds and by two clocks, so a record is
// taken for that of an earlier pod unless it cannot be: that costs one of those
// that are allowed, where the opposite would let a pod go for nothing. No time is needed
// for a pod that this ledger recorded itself: the API server asks once more about a pod
// that is written to while it is being deleted, as one is that has just become ready.
func recordListName(s *policy.PodUnavailableBudgetStatus, pod *corev1.Pod, own bool) string {
	for _, l := range recordLists(s) {
		if at, ok := (*l.records)[pod.Name]; ok && (own || pod.CreationTimestamp.Add(Skew).Before(at.Time)) {
			return l.name
		}
	}
	return ""
}

// recordList is one of the two that pods are recorded in.
type recordList struct {
	name    string
	records *map[string]metav1.Time
}

func recordLists(s *policy.PodUnavailableBudgetStatus) [2]recordList {
	return [2]recordList{{protection.RecordDisrupted, &s.DisruptedPods}, {protection.RecordUnavailable, &s.UnavailablePods}}
}
