// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// why asks how it stands with the object.
func (w *world) why() explain.Answer {
	w.Helper()
	a, ok := w.r.Rounds.ExplainWorkload(kruise.GroupVersion.WithKind("AdvancedCronJob").GroupKind(), "shop", "backup")
	if !ok {
		w.Fatal("nothing is known of it")
	}
	return a
}

func (w *world) expect(verdict explain.Verdict, reason, message, until string) explain.Answer {
	w.Helper()
	a := w.why()
	if a.Verdict != verdict || a.Reason != reason || !strings.Contains(a.Message, message) || a.Until != until {
		w.Errorf("it is %s (%s) until %q: %s", a.Verdict, a.Reason, a.Until, a.Message)
	}
	return a
}

func TestWhyARunDoesNotStart(t *testing.T) {
	t.Run("none is due, and then one runs", func(t *testing.T) {
		w := newWorld(t, nil)
		w.until("03:05:00")
		w.expect(explain.Waiting, "NotDue", "No run is due.", "2026-03-01T03:10:00Z")
		w.until("03:10:00")
		w.expect(explain.Running, "Active", "have not ended: backup-", "2026-03-01T03:20:00Z")
	})
	t.Run("a calendar holds it", func(t *testing.T) {
		w := newWorld(t, nil, `hold contains {"rule": "calendar", "reason": "Closed", "message": "The shop is closed.", "until": "2026-03-01T03:25:00Z", "run": "Wait"} if input.now < time.parse_rfc3339_ns("2026-03-01T03:25:00Z")`)
		w.until("03:10:00")
		a := w.expect(explain.Held, "Closed", "The shop is closed.", "2026-03-01T03:25:00Z")
		if a.Rule != "calendar" || a.Policies == "" || a.Workload != a.Subject {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("a rule says where it is and what it looks at", func(t *testing.T) {
		w := newWorld(t, nil, "# METADATA\n# title: Closing time\n# labels: {id: calendar}\n"+
			`hold contains {"rule": "calendar", "reason": "Closed", "message": "The shop is closed.", "run": "Wait"} if input.run.kind == "Job"`)
		w.until("03:10:00")
		// Another namespace has rules of its own, which change nothing here.
		other, err := bundle.FromFiles("other", map[string]string{"x.rego": "package extend.rollout.other\n\nhold contains {\"reason\": \"No\", \"message\": \"No.\"} if false"}, bundle.AsTenant("bank"))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.engine.ActivateBundles(t.Context(), append(w.engine.ActiveSnapshot().UserBundles(), other)); err != nil {
			t.Fatal(err)
		}
		a := w.expect(explain.Held, "Closed", "The shop is closed.", "2026-03-01T03:20:00Z")
		if a.Title != "Closing time" || !strings.HasPrefix(a.Bundle, "rules-0@") || !strings.HasPrefix(a.Place, "x.rego:") || len(a.Facts) != 1 || a.Facts[0] != (explain.Fact{Name: "run.kind", Value: "Job"}) {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("one was left out", func(t *testing.T) {
		w := newWorld(t, nil, `hold contains {"reason": "Holiday", "message": "It is a holiday.", "run": "Skip"}`)
		w.until("03:10:00")
		w.until("03:11:00")
		w.expect(explain.Waiting, "NotDue", "The last one that never started: The run of 2026-03-01T03:10:00Z is left out: It is a holiday.", "2026-03-01T03:20:00Z")
	})
	t.Run("it is paused", func(t *testing.T) {
		w := newWorld(t, func(j *kruise.AdvancedCronJob) { j.Spec.Paused = ptr.To(true) })
		w.until("03:10:00")
		w.expect(explain.Paused, "Paused", "spec.paused", "")
	})
	t.Run("its schedule cannot be read", func(t *testing.T) {
		w := newWorld(t, func(j *kruise.AdvancedCronJob) { j.Spec.Schedule = "often" })
		w.until("03:10:00")
		w.expect(explain.Held, "UnparseableSchedule", "often", "")
	})
	t.Run("it is gone", func(t *testing.T) {
		w := newWorld(t, nil)
		w.until("03:05:00")
		if err := w.api.Delete(t.Context(), w.get()); err != nil {
			t.Fatal(err)
		}
		w.until("03:06:00")
		if _, ok := w.r.Rounds.ExplainWorkload(kruise.GroupVersion.WithKind("AdvancedCronJob").GroupKind(), "shop", "backup"); ok {
			t.Error("it is still known")
		}
	})
}
