// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
)

func TestConflict(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	race, gone := apierrors.NewConflict(pods, "a", errors.New("x")), apierrors.NewNotFound(pods, "a")
	down := errors.New("the API server is down")
	in := func(err error) error { return fmt.Errorf("updating pod a: %w", err) }
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no error":                                     {nil, false},
		"a conflict":                                   {in(race), true},
		"an object that is gone":                       {in(gone), true},
		"any other error":                              {in(down), false},
		"several conflicts":                            {errors.Join(in(race), in(gone)), true},
		"conflicts and another error":                  {errors.Join(in(race), in(down)), false},
		"several phases with conflicts":                {errors.Join(&PhaseError{PhaseScale, errors.Join(race)}, race), true},
		"another error in a phase, after a conflict":   {errors.Join(race, &PhaseError{PhaseScale, errors.Join(race, down)}), false},
		"a create that something was not found for":    {&CreateError{in(gone)}, false},
		"such a create among conflicts":                {in(errors.Join(race, &CreateError{gone})), false},
		"a create that was in conflict with something": {errors.Join(&CreateError{race}), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsConflict(tc.err); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A round that decided for long writes for as long, but not for longer than the longest turn.
func TestATurnIsNoShorterThanWhatWasDecided(t *testing.T) {
	start := time.Unix(0, 0)
	for decided, want := range map[time.Duration]time.Duration{
		0: 500 * time.Millisecond, 100 * time.Millisecond: 500 * time.Millisecond, time.Second: time.Second, time.Minute: longestTurn,
	} {
		now := start.Add(decided)
		r := &Round{Now: start, writing: now, c: &Controller{writes: 1, turn: 500 * time.Millisecond, Deps: reconcile.Deps{Now: func() time.Time { return now }}}}
		done := 0
		acts := make([]func() error, 100)
		for i := range acts {
			acts[i] = func() error { done++; now = now.Add(100 * time.Millisecond); return nil }
		}
		if err := batch.RunParallel(1, r.inTurn(acts)); err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(done) * 100 * time.Millisecond; got != want {
			t.Errorf("after %s it wrote for %s, want %s", decided, got, want)
		}
	}
}

// Each write takes 200 ms here, and a turn 500.
func TestATurnEnds(t *testing.T) {
	now := time.Unix(0, 0)
	for limit, want := range map[int]int{1: 3, 2: 3, 5: 5, 20: 10} {
		r := &Round{Now: now, writing: now, c: &Controller{writes: limit, turn: 500 * time.Millisecond, Deps: reconcile.Deps{Now: func() time.Time { return now }}}}
		done := 0
		acts := make([]func() error, 10)
		for i := range acts {
			acts[i] = func() error { done++; now = now.Add(200 * time.Millisecond); return nil }
		}
		if err := batch.RunParallel(1, r.inTurn(acts)); err != nil {
			t.Fatal(err)
		}
		if done != want {
			t.Errorf("with %d at once %d are done in a turn, want %d", limit, done, want)
		}
		if again := r.again.after > 0; again != (done < 10) {
			t.Errorf("after %d of 10 another turn is wanted: %v", done, again)
		}
	}
}
