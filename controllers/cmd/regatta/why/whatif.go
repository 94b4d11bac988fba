// SPDX-License-Identifier: Apache-2.0

package why

import (
	"errors"
	"fmt"
	"strings"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// checkWhatIf returns an error if the manager did not change the facts that it was asked to change.
func (o *options) checkWhatIf(a explain.Answer) error {
	switch {
	case len(o.changed) == 0:
		return nil
	case a.WhatIf == nil:
		return fmt.Errorf("--if: manager %s did not decide again: it is of a release that does not know --if, or the latest request that it remembers is one that you may not read", a.Replica)
	case a.WhatIf.Invalid != "":
		return exit.UsageError(errors.New("--if: " + a.WhatIf.Invalid))
	}
	return nil
}

// writeWhatIf prints what would change with other facts, after an empty line.
func (t *text) writeWhatIf(w *whatif.Result) {
	if w == nil {
		return
	}
	t.lines = append(t.lines, "")
	name := "if"
	for _, f := range w.Facts {
		t.writeRow(name, f.Name+": "+changeText(f))
		name = ""
	}
	if w.Error != "" {
		t.writeRow("not known", w.Error)
		return
	}
	if !w.HasChanges() {
		t.writeRow("then", "nothing would change in "+strings.Join(pointsOf(w.Decisions), ", "))
	}
	for _, d := range w.Decisions {
		if d.Changed {
			t.writeDecision(d)
		}
	}
}

// writeDecision prints how one decision differs with the changed facts.
func (t *text) writeDecision(d whatif.Decision) {
	line := fmt.Sprintf("%s: %s in place of %s", d.Point, d.Is, d.Was)
	if d.Is == d.Was {
		line = fmt.Sprintf("%s: %s as before", d.Point, d.Is)
	}
	t.writeRow("then", line)
	t.writeReasons(reasonName(d.Was, "released", "not denied", "no longer"), d.Gone)
	t.writeReasons(reasonName(d.Is, "held by", "denied by", "because of"), d.New)
	t.writeReasons(reasonName(d.Is, "still held by", "still denied", "still"), d.Kept)
	if d.More > 0 {
		t.writeRow("", fmt.Sprintf("and %d more reasons", d.More))
	}
	name := "answer"
	for _, f := range d.Fields {
		t.writeRow(name, f.Name+": "+changeText(f))
		name = ""
	}
	if d.Error != "" {
		t.writeRow("no decision", strings.TrimSuffix(d.Error, ".")+". What holds is the fallback.")
	}
}

// writeReasons prints the reasons of an answer, with their rules and places.
func (t *text) writeReasons(name string, all []record.Reason) {
	for _, r := range all {
		rule := r.Rule
		if rule == "" {
			rule = r.Reason
		}
		if r.Title != "" {
			rule += " - " + r.Title
		}
		if where := limitsOf(r.Hold); where != "" {
			rule += ", only " + where
		}
		t.writeRow(name, rule)
		if r.Place != "" {
			t.writeRow("", fmt.Sprintf("%s, bundle %s", r.Place, bundle.ShortID(r.Bundle)))
		}
		message := r.Message
		if r.Until != "" {
			message += " (until " + r.Until + ")"
		}
		for _, l := range wrapText(message, t.width-column-2) {
			t.writeRow("", "  "+l)
		}
		name = ""
	}
}

// limitsOf names the pods that a hold is limited to, "" if it is of all.
func limitsOf(h decision.Hold) string {
	var out []string
	if h.Pod != "" {
		out = append(out, "pod "+strings.TrimPrefix(h.Namespace+"/"+h.Pod, "/"))
	} else if h.Namespace != "" {
		out = append(out, "namespace "+h.Namespace)
	}
	for _, key := range sortedKeys(h.Where) {
		out = append(out, key+" "+h.Where[key])
	}
	return strings.Join(out, ", ")
}

// reasonName selects the name of reasons by the word of the answer that has them.
func reasonName(word, held, denied, other string) string {
	switch word {
	case "Hold", "Partly":
		return held
	case "Deny", "Refuse":
		return denied
	}
	return other
}

// changeText writes both values of a fact.
func changeText(f whatif.Fact) string {
	value := func(v *string) string {
		switch {
		case v == nil:
			return "not there"
		case *v == "":
			return `""`
		}
		return factText(f.Name, *v)
	}
	if f.Hidden {
		return value(f.Is) + " (the value that it has is not shown)"
	}
	return value(f.Was) + " -> " + value(f.Is)
}

func pointsOf(all []whatif.Decision) []string {
	out := make([]string, len(all))
	for i, d := range all {
		out[i] = string(d.Point)
	}
	return out
}
