// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/test/rules"
)

// A pod is taken back where no decision about it is made for a minute, and not where one is late each now and then, or one
// after the other: late decisions come.
func TestForHowLongAPodIsUndecided(t *testing.T) {
	for _, tc := range []struct {
		name string
		// undecided are the pods about which nothing is decided, in rounds that are twenty seconds apart.
		undecided [][]string
		want      bool // of the first of the last round
	}{
		{"a pod for a minute", [][]string{{"a"}, {"a"}, {"a"}, {"a"}}, true},
		{"a pod for less", [][]string{{"a"}, {"a"}, {"a"}}, false},
		{"a pod that was decided about meanwhile", [][]string{{"a"}, {"a"}, {"b"}, {"a"}, {"a"}}, false},
		{"one after the other", [][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}, false},
		{"one among others", [][]string{{"a", "b"}, {"c", "a"}, {"a"}, {"a", "b"}}, true},
	} {
		first, _ := testRound(rules.Engine(t, "package override.rollout"), 1, 0, nil)
		var got bool
		for i, pods := range tc.undecided {
			r := &Round{c: first.c, Workload: first.Workload, Now: first.Now.Add(time.Duration(i) * 20 * time.Second), memory: first.memory}
			d := Decisions{Looked: true}
			for _, name := range pods {
				d.Skipped = append(d.Skipped, selection.Skip{Pod: types.NamespacedName{Namespace: "shop", Name: name}, Hold: decision.Hold{Rule: decision.RuleEngine}})
			}
			got = r.noteUndecided(d)[d.Skipped[0].Pod]
			if r.again.after != undecidedAgain {
				t.Errorf("%s: it is asked again after %s", tc.name, r.again.after)
			}
		}
		if got != tc.want {
			t.Errorf("%s: taken back: %t", tc.name, got)
		}
	}
	if r, _ := testRound(rules.Engine(t, "package override.rollout"), 1, 0, nil); len(r.noteUndecided(Decisions{Looked: true})) > 0 || r.again.after != 0 {
		t.Error(fmt.Sprint("asked again after ", r.again.after))
	}
}
