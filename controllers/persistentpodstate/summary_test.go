// SPDX-License-Identifier: Apache-2.0

package persistentpodstate

import (
	"errors"
	"testing"

	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/test/waiting"
)

func TestWhatKstatusSaysOfAPersistentPodState(t *testing.T) {
	judge := func(name string, s *kruise.PersistentPodState, want status.Status, reason, text string) {
		t.Helper()
		got, message := waiting.JudgeObject(t, kruise.GroupVersion.WithKind("PersistentPodState"), s)
		ready, _ := condition.FindCondition(&s.Status, kruise.ConditionReady)
		if got != want || ready.Reason != reason || ready.Message != text {
			t.Errorf("%s: kstatus says %s (%s), and Ready is %+v; want %s, %s, %q", name, got, message, ready, want, reason, text)
		}
	}
	without := newWorld(t, state("apps/v1", nil)).round()
	judge("its workload does not exist yet", without, waiting.Current, kruise.TargetNotFoundReason, "There is no StatefulSet db in namespace shop.")

	w := newWorld(t, state("apps/v1", nil), native(1))
	w.pod("db-0", "n1")
	judge("its pods are remembered", w.round(), waiting.Current, kruise.ObservedReason, "The places of the pods are remembered.")
	s := w.round()
	s.Generation++
	judge("its controller has not seen the newest spec", s, waiting.InProgress, kruise.ObservedReason, "The places of the pods are remembered.")

	s = w.round()
	if err := failure.Write(t.Context(), w.api, s, func(s *kruise.PersistentPodState) any { return &s.Status }, errors.New("no answer"), w.r.Now()); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		t.Fatal(err)
	}
	judge("its controller failed", s, waiting.InProgress, failure.ConditionType, "no answer")
	s = w.round()
	judge("its controller goes on", s, waiting.Current, kruise.ObservedReason, "The places of the pods are remembered.")
	if next := w.round(); condition.HasCondition(&s.Status, failure.ConditionType) || next.ResourceVersion != s.ResourceVersion {
		t.Errorf("FailedReconcile stays, or the round after that writes, too: %+v", next.Status)
	}
}
