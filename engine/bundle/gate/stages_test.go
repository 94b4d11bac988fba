package gate

import (
	"errors"
	"testing"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

func TestADecisionThatIsLateNowAndThenIsNoReasonToRefuse(t *testing.T) {
	late := &record.Difference{Then: record.Side{Outcome: decision.Decided}, Now: record.Side{Outcome: decision.TimedOut}}
	other := &record.Difference{Then: record.Side{Outcome: decision.Decided}, Now: record.Side{Outcome: decision.Decided}}
	failed := &record.Difference{Then: record.Side{Outcome: decision.Decided}, Now: record.Side{Outcome: decision.Failed}}
	before := &record.Difference{Then: record.Side{Outcome: decision.TimedOut}, Now: record.Side{Outcome: decision.TimedOut}}
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		answers []*record.Difference
		err     error
		want    *record.Difference
		asked   int
	}{
		"the same at once":                  {[]*record.Difference{nil}, nil, nil, 1},
		"another at once":                   {[]*record.Difference{other}, nil, other, 1},
		"none at all":                       {[]*record.Difference{failed}, nil, failed, 1},
		"late once, and the same then":      {[]*record.Difference{late, nil}, nil, nil, 2},
		"late twice, and another then":      {[]*record.Difference{late, late, other}, nil, other, 3},
		"late each time":                    {[]*record.Difference{late, late, late}, nil, late, 3},
		"late when it was recorded as well": {[]*record.Difference{before}, nil, before, 1},
		"what cannot be made again":         {[]*record.Difference{nil}, broken, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			got, err := inTime(attempts, func() (*record.Difference, error) {
				asked++
				return tc.answers[asked-1], tc.err
			})
			if got != tc.want || !errors.Is(err, tc.err) || asked != tc.asked {
				t.Errorf("got %v, %v after %d, want %v after %d", got, err, asked, tc.want, tc.asked)
			}
		})
	}
}
