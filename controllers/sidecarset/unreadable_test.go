// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
)

// The status and one event report what the controller cannot read. The rest of the status stays as it was.
func TestASidecarSetWhosePodsCannotBeReadSaysSo(t *testing.T) {
	w := started(t, "", 2, logs(nil))
	before := w.set("logs").Status
	w.told("")
	w.unlisted = errors.New("no answer")
	for range 3 {
		if _, err := w.c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs"}}); err == nil {
			t.Fatal("it could be read")
		}
	}
	s := w.set("logs").Status
	if c := meta.FindStatusCondition(s.Conditions, failure.ConditionType); c == nil || c.Status != "True" || !strings.Contains(c.Message, "listing pods: no answer") {
		t.Errorf("the condition is %+v", c)
	}
	if told := w.told(failure.ConditionType); len(told) != 1 || s.MatchedPods != before.MatchedPods || s.ReadyPods != before.ReadyPods {
		t.Errorf("told is %v, and the status is %+v, before %+v", told, s, before)
	}
	w.unlisted = nil
	w.round("logs")
	if c := meta.FindStatusCondition(w.set("logs").Status.Conditions, failure.ConditionType); c != nil {
		t.Errorf("at the end the condition is %+v", c)
	}
}

// A revision that an injection strategy names may be deleted. New pods get the latest one then, which the status tells.
func TestASidecarSetWhoseNamedRevisionIsGoneSaysSo(t *testing.T) {
	w := started(t, "", 1, logs(nil))
	names := func(revision string) {
		w.edit("logs", func(s *kruise.SidecarSet) {
			s.Spec.InjectionStrategy.Revision = &kruise.SidecarSetInjectRevision{RevisionName: &revision, Policy: kruise.AlwaysSidecarSetInjectRevisionPolicy}
		})
		w.round("logs")
		w.round("logs")
	}
	names("logs-gone")
	c := meta.FindStatusCondition(w.set("logs").Status.Conditions, revisionGone)
	if told := w.told(revisionGone); c == nil || !strings.Contains(c.Message, `names "logs-gone", which no revision has`) || len(told) != 1 {
		t.Errorf("the condition is %+v, and told is %v", c, told)
	}
	names(w.set("logs").Status.LatestRevision)
	if c := meta.FindStatusCondition(w.set("logs").Status.Conditions, revisionGone); c != nil {
		t.Errorf("with one that exists the condition is %+v", c)
	}
}
