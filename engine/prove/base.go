// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Bounds of the inputs that are varied at a point.
const (
	maxBases    = 4
	maxRecorded = 16
	maxLooked   = 64  // cases that are looked at
	maxReplayed = 512 // recorded inputs that are looked at, spread over all
)

// findBases returns inputs to vary, as JSON values: the first case of the point, further ones that the
// old policies answer in another way, and recorded inputs. Without any it is the zero value.
// Its error says that answers were late.
func (s *searcher) findBases(ctx context.Context) ([]any, error) {
	var out []any
	var late error
	answers := map[string]bool{}
	add := func(input any, most int) {
		if len(out) >= most || late != nil {
			return
		}
		pair, err := s.decideBoth(ctx, input)
		if errors.Is(err, ErrLate) {
			late = err
		}
		if err != nil || pair == nil || pair.new.Outcome != decision.Decided && pair.old.Outcome != decision.Decided {
			return
		}
		if answer := pair.describeAnswers(); !answers[answer] {
			answers[answer] = true
			out = append(out, input)
		}
	}
	looked := 0
	for _, f := range s.Cases {
		for _, c := range f.Cases {
			if c.Point != s.point.Name || looked >= maxLooked {
				continue
			}
			looked++
			if in, err := f.CaseInput(c, s.point); err == nil {
				if base, err := asJSON(in); err == nil {
					add(base, maxBases)
				}
			}
		}
	}
	for _, base := range s.recordedInputs() {
		if ctx.Err() == nil {
			add(base, maxBases+maxRecorded)
		}
	}
	if late != nil {
		return nil, late
	}
	if len(out) == 0 {
		out = append(out, any(map[string]any{}))
	}
	s.report.Undecided, s.report.TimedOut, s.report.Invalid, s.report.Exempt, s.late = 0, 0, 0, 0, 0
	s.report.Unevaluated = 0
	return out, nil
}

// recordedInputs returns inputs of the point that were recorded, spread over all records.
func (s *searcher) recordedInputs() (out []any) {
	for i := 0; i < len(s.Records); i += 1 + len(s.Records)/maxReplayed {
		if r := s.Records[i]; r.Point == s.point.Name {
			if base, err := asJSON(r.Input); err == nil {
				out = append(out, base)
			}
		}
	}
	return out
}

// asJSON returns an input as JSON values, with numbers as text.
func asJSON(in any) (any, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("writing an input: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil, fmt.Errorf("reading an input: %w", err)
	}
	return out, nil
}
