package cloneset

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
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
		"several phases with conflicts":                {errors.Join(&phaseError{kruise.CloneSetConditionFailedScale, errors.Join(race)}, race), true},
		"another error in a phase, after a conflict":   {errors.Join(race, &phaseError{kruise.CloneSetConditionFailedScale, errors.Join(race, down)}), false},
		"a create that something was not found for":    {&madeError{in(gone)}, false},
		"such a create among conflicts":                {in(errors.Join(race, &madeError{gone})), false},
		"a create that was in conflict with something": {errors.Join(&madeError{race}), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := conflict(tc.err); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestSlowly(t *testing.T) {
	for failing, want := range map[int]int32{0: 20, 1: 1, 2: 3, 3: 3, 4: 7, 20: 20} {
		var started atomic.Int32
		var acts []func() error
		for i := 1; i <= 20; i++ {
			acts = append(acts, func() error {
				started.Add(1)
				if i == failing {
					return errors.New("failed")
				}
				return nil
			})
		}
		if err := slowly(4, acts); (err != nil) != (failing > 0) || started.Load() != want {
			t.Errorf("act %d fails: %v, %d were started, want %d", failing, err, started.Load(), want)
		}
	}
}

func TestParallelDoesAllWhateverFails(t *testing.T) {
	var mu sync.Mutex
	var done []int
	var acts []func() error
	for i := range 10 {
		acts = append(acts, func() error {
			mu.Lock()
			defer mu.Unlock()
			done = append(done, i)
			return fmt.Errorf("act %d", i)
		})
	}
	err := parallel(0, acts) // at least one at a time
	if slices.Sort(done); len(done) != 10 {
		t.Errorf("done are %v", done)
	}
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 10 {
		t.Errorf("the errors are %v", err)
	}
}
