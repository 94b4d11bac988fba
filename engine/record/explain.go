// SPDX-License-Identifier: Apache-2.0

package record

import (
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Answer says why something was decided, for users and as JSON.
type Answer struct {
	Subject decision.Subject `json:"subject"`
	Point   decision.Name    `json:"point"`
	Time    time.Time        `json:"time"`
	Outcome decision.Outcome `json:"outcome"`
	Verdict string           `json:"verdict"`
	// Reasons are the reasons of the verdict. There are none if nothing is held.
	Reasons []Reason `json:"reasons,omitempty"`
	// Rules are the rules that took part in the decision.
	Rules []engine.Rule `json:"rules,omitempty"`
	// Until is when the decision may change by the passing of time alone.
	Until    string   `json:"until,omitempty"`
	Revision string   `json:"revision"`
	Bundles  []string `json:"bundles,omitempty"`
	// Error says why there was no decision, if the outcome is not Decided.
	Error string `json:"error,omitempty"`
}

// Reason is a reason of a verdict, with its rule.
type Reason struct {
	decision.Hold
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Bundle      string `json:"bundle,omitempty"`
	Place       string `json:"place,omitempty"` // file:row:col
	// Facts are the facts that the rule reads, by path, with their values at the time.
	Facts map[string]any `json:"facts,omitempty"`
}

// ExplainDecision makes an answer from a record. The engine knows the rules of the active revision;
// for a rule that is gone, the answer has only its id.
func ExplainDecision(e *engine.Engine, r decision.Record) Answer {
	v := decision.VerdictOf(r)
	a := Answer{
		Subject: r.Subject, Point: r.Point, Time: r.Time, Outcome: r.Outcome, Verdict: v.Word,
		Revision: r.Revision, Bundles: r.Bundles, Error: r.Error,
	}
	snapshot := e.ActiveSnapshot()
	facts, _ := e.Codec().Encode(r.Input) // the rest of the answer does not need facts
	for _, id := range r.Rules {
		rule, _ := snapshot.FindRule(r.Subject, id)
		a.Rules = append(a.Rules, rule)
	}
	for _, h := range v.Reasons {
		reason := Reason{Hold: h}
		if rule, ok := snapshot.FindRule(r.Subject, h.Rule); ok {
			reason.Title, reason.Description = rule.Title, rule.Description
			reason.Bundle, reason.Place = rule.Bundle, rule.Place
			reason.Facts = pickFacts(facts, rule.Inputs)
		}
		if h.Until != "" && (a.Until == "" || isEarlierTime(h.Until, a.Until)) {
			a.Until = h.Until
		}
		a.Reasons = append(a.Reasons, reason)
	}
	return a
}

// isEarlierTime compares times in text form; an invalid time is never earlier.
func isEarlierTime(a, b string) bool {
	x, err := time.Parse(time.RFC3339, a)
	if err != nil {
		return false
	}
	y, err := time.Parse(time.RFC3339, b)
	return err != nil || x.Before(y)
}

// most is how long a list may be to be shown as a fact; of longer ones only the length is shown.
const most = 8

// pickFacts returns the facts at some paths below the input.
func pickFacts(facts ast.Value, paths []ast.Ref) map[string]any {
	if facts == nil {
		return nil
	}
	out := map[string]any{}
	for _, p := range paths {
		v, err := facts.Find(p[1:])
		if err != nil {
			continue // the rule reads a fact that this input does not have
		}
		switch list := v.(type) {
		case *ast.Array:
			if list.Len() > most {
				out["count("+p.String()+")"] = list.Len()
				continue
			}
		case ast.Object:
			if list.Len() > most {
				out["count("+p.String()+")"] = list.Len()
				continue
			}
		}
		if x, err := ast.JSON(v); err == nil {
			out[p.String()] = x
		}
	}
	return out
}
