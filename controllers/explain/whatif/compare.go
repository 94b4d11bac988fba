// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/record/mask"
)

// Bounds of a result, which also bound the reply that it is part of.
const (
	maxReasons = 8   // of each kind
	maxFields  = 8   // that differ
	maxValue   = 400 // bytes of a value
	maxMessage = 1 << 10
)

// valueText writes a value: text as it is, and all else as JSON. It returns nil if there is none.
func valueText(v any, ok bool) *string {
	if !ok {
		return nil
	}
	text, isText := v.(string)
	if !isText {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		text = string(raw)
	}
	text = decision.TruncateText(text, maxValue)
	return &text
}

// compareAnswers compares two answers of a point.
func (b *Basis) compareAnswers(line *mask.Line, was, is decision.Record) (*Decision, error) {
	d := &Decision{Point: was.Point, Was: describeAnswer(was), Is: describeAnswer(is)}
	if is.Outcome != decision.Decided {
		d.Error = decision.TruncateText(line.MaskMessage("error", cmp.Or(is.Error, string(is.Outcome))), maxMessage)
	}
	fields, same, err := differingFields(was.Output, is.Output, line)
	if err != nil {
		return nil, fmt.Errorf("comparing the answers of %s: %w", was.Point, err)
	}
	d.Changed, d.Fields = !same || was.Outcome != is.Outcome, fields
	old, now := record.ExplainDecision(b.Engine, was).Reasons, record.ExplainDecision(b.Engine, is).Reasons
	before, after := reasonKeys(old), reasonKeys(now)
	d.Gone = d.addReasons(line, old, func(key string) bool { return !after[key] })
	d.New = d.addReasons(line, now, func(key string) bool { return !before[key] })
	d.Kept = d.addReasons(line, now, func(key string) bool { return before[key] })
	return d, nil
}

// describeAnswer puts an answer in a word.
func describeAnswer(r decision.Record) string {
	if r.Outcome != decision.Decided {
		return string(r.Outcome)
	}
	return decision.VerdictOf(r).Word
}

// reasonKey is equal for two reasons that are of one rule and about the same things. Their messages and times may differ.
func reasonKey(r record.Reason) string {
	h := r.Hold
	h.Message, h.Until = "", ""
	key, err := json.Marshal(h)
	if err != nil { // impossible: it has texts only
		return h.Rule
	}
	return string(key)
}

func reasonKeys(all []record.Reason) map[string]bool {
	out := make(map[string]bool, len(all))
	for _, r := range all {
		out[reasonKey(r)] = true
	}
	return out
}

// addReasons returns the first of the reasons that are meant, in short, and counts the others in More.
func (d *Decision) addReasons(line *mask.Line, all []record.Reason, isMeant func(key string) bool) (out []record.Reason) {
	for _, r := range all {
		switch {
		case !isMeant(reasonKey(r)):
			continue
		case len(out) == maxReasons:
			d.More++
			continue
		}
		r.Facts, r.Description = nil, ""
		r.Message = decision.TruncateText(line.MaskMessage("message", r.Message), maxMessage)
		r.Title, r.Rule, r.Reason = decision.TruncateText(r.Title, maxValue), decision.TruncateText(r.Rule, maxValue), decision.TruncateText(r.Reason, maxValue)
		if text, err := json.Marshal(r.Where); err != nil || len(text) > maxMessage {
			r.Where = nil
		}
		out = append(out, r)
	}
	return out
}

// differingFields compares two answers field by field. It leaves out the fields with reasons, which are compared one by one.
func differingFields(was, is any, line *mask.Line) (out []Fact, same bool, err error) {
	old, oldShown, err := answerFields(was, line)
	if err != nil {
		return nil, false, err
	}
	now, nowShown, err := answerFields(is, line)
	if err != nil {
		return nil, false, err
	}
	names := maps.Clone(old)
	maps.Copy(names, now)
	same = true
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := old[name], now[name]
		if isEmptyValue(a) && isEmptyValue(b) || reflect.DeepEqual(a, b) {
			continue
		}
		same = false
		if hasReasons(a) || hasReasons(b) || len(out) == maxFields {
			continue
		}
		out = append(out, Fact{Name: name, Was: valueText(oldShown[name], a != nil), Is: valueText(nowShown[name], b != nil)})
	}
	return out, same, nil
}

// answerFields returns the fields of an answer by their names in JSON, as they are and masked.
func answerFields(output any, line *mask.Line) (plain, masked map[string]any, err error) {
	raw, err := json.Marshal(output)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range []struct {
		text []byte
		to   *map[string]any
	}{{raw, &plain}, {line.MaskJSON("result", raw), &masked}} {
		tree, err := decodeTree(one.text)
		if err != nil {
			return nil, nil, err
		}
		fields, ok := tree.(map[string]any)
		if !ok {
			return nil, nil, errors.New("the answer is no object")
		}
		*one.to = fields
	}
	return plain, masked, nil
}

// isEmptyValue reports whether a value is null, or an empty list or object: policies do not distinguish these.
func isEmptyValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// hasReasons reports whether a field is a list of reasons, such as holds and denials.
func hasReasons(v any) bool {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return false
	}
	first, ok := list[0].(map[string]any)
	if !ok {
		return false
	}
	_, reason := first["reason"].(string)
	_, message := first["message"].(string)
	return reason && message
}
