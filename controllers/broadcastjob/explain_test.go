// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
)

func (w *world) expect(verdict explain.Verdict, reason, message string) explain.Answer {
	w.Helper()
	a, ok := w.r.Rounds.ExplainWorkload(kruise.GroupVersion.WithKind("BroadcastJob").GroupKind(), "ops", "upgrade")
	if !ok {
		w.Fatal("nothing is known of it")
	}
	if a.Verdict != verdict || a.Reason != reason || !strings.Contains(a.Message, message) {
		w.Errorf("it is %s (%s): %s", a.Verdict, a.Reason, a.Message)
	}
	return a
}

func TestWhyAJobDoesNotGoOn(t *testing.T) {
	t.Run("it runs, and ends", func(t *testing.T) {
		w := newWorld(t, nil)
		w.round()
		w.round()
		w.expect(explain.Running, "running", "Of 3 nodes 0 have succeeded and 0 have failed; pods run or start on 3, and 0 wait for theirs.")
		w.phase(corev1.PodSucceeded, "a", "b", "c")
		w.round()
		w.expect(explain.Ended, "completed", "Of 3 nodes 3 have succeeded")
		w.restart()
		w.round()
		w.expect(explain.Ended, "completed", "Of 3 nodes 3 have succeeded")
	})
	t.Run("a rule holds it, and says where it is", func(t *testing.T) {
		w := newWorld(t, nil, "# METADATA\n# title: At night\n# labels: {id: night}\n"+
			`hold contains {"rule": "night", "reason": "Night", "message": "It is night.", "until": "2023-11-14T23:00:00Z"} if input.counts.waiting > 0`)
		w.round()
		a := w.expect(explain.Held, "Night", "It is night. Of 3 nodes 0 have succeeded and 0 have failed; pods run or start on 0, and 3 wait for theirs.")
		if a.Rule != "night" || a.Title != "At night" || a.Bundle == "" || a.Place == "" || a.Until != "2023-11-14T23:00:00Z" || len(a.Facts) != 1 || a.Facts[0].Name != "counts.waiting" {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("a user has paused it", func(t *testing.T) {
		w := newWorld(t, func(j *kruise.BroadcastJob) { j.Spec.Paused = true })
		w.round()
		w.expect(explain.Paused, "paused", "spec.paused is true")
	})
	t.Run("a pod that failed has paused it", func(t *testing.T) {
		w := newWorld(t, func(j *kruise.BroadcastJob) { j.Spec.FailurePolicy.Type = kruise.FailurePolicyTypePause })
		w.round()
		w.phase(corev1.PodFailed, "a")
		w.round()
		w.expect(explain.Paused, "paused", "has failed, one of 1. To go on")
	})
	t.Run("it has failed", func(t *testing.T) {
		w := newWorld(t, nil)
		w.round()
		w.phase(corev1.PodFailed, "a")
		w.round()
		w.expect(explain.Ended, "failed", "failed pod is found. Of 3 nodes 0 have succeeded and 3 have failed")
	})
}
