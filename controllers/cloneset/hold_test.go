package cloneset

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/record"

	"github.com/regatta-sh/regatta/engine/decision"
)

func TestAnEventOfAHoldWarnsUnlessTheUserAskedForIt(t *testing.T) {
	e := simEngine(t)
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
	}{
		"a paused rollout is normal":                 {func(w *world) { w.strategy.Paused = true }, "Normal UpdateHeld RolloutPaused: "},
		"OnDelete is normal":                         {func(w *world) { w.strategy.Type = "OnDelete" }, "Normal UpdateHeld OnDelete: "},
		"a strategy that no rule knows is a warning": {func(w *world) { w.strategy.Type = "Other" }, "Warning UpdateHeld UnknownStrategy: "},
		"a policy that holds is a warning, paused or not": {func(w *world) {
			w.strategy.Paused = true
			w.holds = []decision.Hold{{Rule: "demo", Reason: "Frozen", Message: "Frozen."}}
		}, "Warning UpdateHeld Frozen: "},
	} {
		t.Run(name, func(t *testing.T) {
			events := record.NewFakeRecorder(10)
			r := New(nil, nil, e, events)
			w := testWorld(e, 3, 0, tc.change)
			w.planned = true
			decide(t.Context(), r, w)
			status := w.status()
			r.reportHold(w, &status)
			if len(events.Events) != 1 {
				t.Fatalf("%d events", len(events.Events))
			}
			if got := <-events.Events; !strings.HasPrefix(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			r.reportHold(w, &status) // the same again is no news
			if len(events.Events) != 0 {
				t.Error(<-events.Events)
			}
		})
	}
}
