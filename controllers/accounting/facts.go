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

// buildInput returns the input of the decision about a request. own is true if this accountant has recorded this
// very pod.
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

// protectedOperations returns the operations that the budget names, in the field or in the annotation
// of earlier versions.
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

// Skew is how far the clocks of the manager and the API server may differ before the record of a pod
// is taken for the record of another pod of the same name.
const Skew = 2 * time.Second

// recordListName returns the name of the list that has this pod. A pod of the same name that was
// created after the record is another pod. Times are in whole seconds and of two clocks, so a record
// counts as that of an earlier pod whenever it could be one. That error costs one allowed disruption;
// the opposite error would allow a disruption that is not counted. Times do not matter for a pod that
// this accountant recorded itself: the API server asks once more about a pod that is written to while
// it is being deleted, such as one that has just become ready.
func recordListName(s *policy.PodUnavailableBudgetStatus, pod *corev1.Pod, own bool) string {
	for _, l := range recordLists(s) {
		if at, ok := (*l.records)[pod.Name]; ok && (own || pod.CreationTimestamp.Add(Skew).Before(at.Time)) {
			return l.name
		}
	}
	return ""
}

// recordList is one of the two lists that pods are recorded in.
type recordList struct {
	name    string
	records *map[string]metav1.Time
}

func recordLists(s *policy.PodUnavailableBudgetStatus) [2]recordList {
	return [2]recordList{{protection.RecordDisrupted, &s.DisruptedPods}, {protection.RecordUnavailable, &s.UnavailablePods}}
}
