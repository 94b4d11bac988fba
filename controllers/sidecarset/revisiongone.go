// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// revisionGone is the type of the condition of a SidecarSet whose injection strategy names a revision that does not exist, and its reason.
const revisionGone = "InjectionRevisionGone"

// reportRevisionGone keeps the condition while the revision that new pods are to get does not exist. Admission refuses the name of a
// revision that does not exist, but a revision may be deleted later.
func reportRevisionGone(r *rollout.Round, t *templates, set *kruise.SidecarSet, s *kruise.SidecarSetStatus) {
	want := set.Spec.InjectionStrategy.Revision
	if want == nil || history.FindRevision(t.History.All, want) != nil {
		condition.RemoveConditions(s, revisionGone)
		return
	}
	message := fmt.Sprintf("spec.injectionStrategy.revision names %q, which no revision has, so new pods get the latest revision.", cmp.Or(ptr.Deref(want.CustomVersion, ""), ptr.Deref(want.RevisionName, "")))
	if meta.FindStatusCondition(s.Conditions, revisionGone) == nil {
		r.RecordWarning(revisionGone, message)
	}
	condition.SetCondition(s, condition.Condition{
		Type: revisionGone, Status: metav1.ConditionTrue, Reason: revisionGone, Message: message,
	}, s.ObservedGeneration, metav1.NewTime(r.Now))
}
