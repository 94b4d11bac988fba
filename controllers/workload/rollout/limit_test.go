// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

// limitedKind lets so many pods be recreated.
type limitedKind struct {
	plainKind
	allowed int
	asked   [][]string
}

func (k *limitedKind) LimitRecreations(_ context.Context, _ *Round, _ *Facts, pods []*facts.Pod) (int, func(*facts.Pod) decision.Hold) {
	k.asked = append(k.asked, namesOf(pods))
	return k.allowed, func(p *facts.Pod) decision.Hold {
		return decision.Hold{Rule: "bound", Reason: "Enough", Message: "Enough."}.OfPod(p.Namespace, p.Name)
	}
}

func namesOf(pods []*facts.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

// recreateUngated changes pods in place that have the readiness gate.
const recreateUngated = `package override.rollout

change := {"action": "Recreate", "reason": "Ungated", "message": "No gate."} if input.ungated

change := {"action": "InPlace", "reason": "Gated", "message": "A gate."} if not input.ungated
`

// A kind that limits recreations is asked once, in the order of the candidates, ahead of the moves. Pods that it does not let be recreated
// use up nothing: one that is changed in place is taken instead, and no other one is recreated.
func TestAKindLimitsRecreationsAheadOfTheMoves(t *testing.T) {
	e := rules.Engine(t, recreateUngated)
	for name, tc := range map[string]struct {
		allowed     int
		takes, held []string
	}{
		"all":                   {2, []string{"web-0", "web-1"}, nil},
		"more than asked about": {7, []string{"web-0", "web-1"}, nil},
		"the first":             {1, []string{"web-0", "web-3"}, []string{"web-1", "web-2", "web-4"}},
		"none":                  {0, []string{"web-3"}, []string{"web-0", "web-1", "web-2", "web-4"}},
		"less than none":        {-1, []string{"web-3"}, []string{"web-0", "web-1", "web-2", "web-4"}},
	} {
		t.Run(name, func(t *testing.T) {
			kind := &limitedKind{allowed: tc.allowed}
			r, f := testRound(e, 5, 0, func(f *Facts, pods []*corev1.Pod) {
				f.Strategy.MaxUnavailable, f.Templates = 2, versions("2")
				for _, p := range pods {
					p.Annotations = map[string]string{sidecarVersion: "1"}
				}
				inplace.AddGate(pods[3], kruise.InPlaceUpdateReady)
			})
			r.c.kind = kind
			d, err := r.decideMoves(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			var takes, held []string
			for _, m := range d.Take {
				takes = append(takes, m.Pod.Name)
			}
			for _, s := range d.Skipped {
				if s.Hold.Rule == "bound" {
					held = append(held, s.Pod.Name)
				}
			}
			if !slices.Equal(takes, tc.takes) || !slices.Equal(held, tc.held) {
				t.Errorf("took %v and held %v, want %v and %v", takes, held, tc.takes, tc.held)
			}
			if len(kind.asked) != 1 || !slices.Equal(kind.asked[0], []string{"web-0", "web-1"}) {
				t.Errorf("asked about %v, want the two pods that the walk takes, once", kind.asked)
			}
			if (d.Limited != nil) != (tc.held != nil) {
				t.Errorf("limited by %+v", d.Limited)
			}
		})
	}
}

// A pod that was to wait when the limit was asked for, and is to be recreated when it is moved, was not asked about: it waits for the next round.
func TestNoPodIsRecreatedThatALimitWasNotAskedAbout(t *testing.T) {
	r, f := testRound(rules.Engine(t, scaleQuota), 2, 0, func(f *Facts, pods []*corev1.Pod) {
		f.Strategy.MaxUnavailable, f.Templates = 2, versions("2")
		for _, p := range pods {
			p.Annotations = map[string]string{sidecarVersion: "1"}
		}
	})
	in := f.PlanInput()
	plan, _ := EvaluatePoint(t.Context(), r, f, points.PlanPoint(), in)
	order := r.orderCandidates(t.Context(), f, plan, in, f.IsCandidate)
	for name, limited := range map[string]bool{"nothing limits": false, "a limit was asked about none": true} {
		t.Run(name, func(t *testing.T) {
			u := &updates{
				places:  r.newPlaces(order, nil, selection.ClampPlan(in, plan), selection.Unavailable{}, &r.memory.passedByUpdate),
				changes: &changeDecisions{r: r, f: f, known: map[podChange]Change{}}, room: recreations{f: f},
			}
			if limited {
				u.mayRecreate = map[*facts.Pod]bool{}
			}
			d, want := Decisions{}, len(f.Pods)
			moves, err := u.takeMoves(t.Context(), &d)
			if limited {
				want = 0
			}
			if err != nil || len(moves) != want || len(d.Skipped) != len(f.Pods)-want {
				t.Errorf("%d are moved and %+v skipped: %v", len(moves), d.Skipped, err)
			}
			for _, s := range d.Skipped {
				if s.Hold.Reason != SurgeLimitedReason {
					t.Errorf("%s waits since %+v", s.Pod, s.Hold)
				}
			}
		})
	}
}
