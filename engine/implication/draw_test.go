// SPDX-License-Identifier: Apache-2.0

package implication_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// The inputs of two decision points.
type (
	first struct {
		A int               `json:"a"`
		B int               `json:"b"`
		C uint              `json:"c"`
		O int               `json:"o,omitempty"`
		F bool              `json:"f"`
		P bool              `json:"p,omitempty"`
		S string            `json:"s"`
		T string            `json:"t,omitempty"`
		R float64           `json:"r"`
		N *nested           `json:"n,omitempty"`
		Q *int              `json:"q"`
		M map[string]string `json:"m,omitempty"`
		L []element         `json:"l"`
	}
	second struct {
		A int       `json:"a"`
		S string    `json:"s"`
		F bool      `json:"f,omitempty"`
		L []element `json:"l,omitempty"`
		V []string  `json:"v"`
	}
	nested struct {
		X int  `json:"x"`
		Y bool `json:"y,omitempty"`
	}
	element struct {
		K int    `json:"k"`
		Q bool   `json:"q,omitempty"`
		S string `json:"s"`
	}
)

func drawElements(t *rapid.T) []element {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) element {
		return element{K: drawInt(t), Q: rapid.Bool().Draw(t, "q"), S: drawString(t)}
	}), 0, 3).Draw(t, "elements")
}

func drawInt(t *rapid.T) int { return rapid.IntRange(-2, 4).Draw(t, "int") }

func drawString(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "a", "ab", "b"}).Draw(t, "string")
}

// drawInput draws an input of one of the points.
func drawInput(t *rapid.T) any {
	if rapid.IntRange(0, 3).Draw(t, "point") == 0 {
		return second{A: drawInt(t), S: drawString(t), F: rapid.Bool().Draw(t, "f"), L: drawElements(t), V: rapid.SliceOfN(rapid.Custom(drawString), 0, 2).Draw(t, "v")}
	}
	out := first{
		A: drawInt(t), B: drawInt(t), C: uint(drawInt(t) + 2), O: drawInt(t), F: rapid.Bool().Draw(t, "f"), P: rapid.Bool().Draw(t, "p"),
		S: drawString(t), T: drawString(t), R: float64(drawInt(t)) / 2, L: drawElements(t),
	}
	if rapid.Bool().Draw(t, "nested") {
		out.N = &nested{X: drawInt(t), Y: rapid.Bool().Draw(t, "y")}
	}
	if rapid.Bool().Draw(t, "pointer") {
		n := drawInt(t)
		out.Q = &n
	}
	out.M = rapid.MapOfN(rapid.SampledFrom([]string{"k", "l"}), rapid.Custom(drawString), 0, 2).Draw(t, "m")
	return out
}

// rules draws rules in Rego.
type rules struct {
	t       *rapid.T
	helpers int
	// vars are variables that the rule has so far, and elements those that are elements.
	vars, elements []string
}

func (r *rules) oneOf(from ...string) string { return rapid.SampledFrom(from).Draw(r.t, "of") }

func (r *rules) isChosen(n int) bool { return rapid.IntRange(0, n-1).Draw(r.t, "chance") == 0 }

// drawPath draws a fact, a variable, or a call.
func (r *rules) drawPath() string {
	switch rapid.IntRange(0, 11).Draw(r.t, "path") {
	case 0, 1:
		if len(r.elements) > 0 {
			return r.oneOf(r.elements...) + "." + r.oneOf("k", "q", "s", "none")
		}
	case 2, 3:
		if len(r.vars) > 0 {
			return r.oneOf(r.vars...)
		}
	case 4:
		return r.oneOf("count(input.l)", "count(input.m)", "input.a - input.b", "count(input.n)", "constant", "settings.least", "settings.none", "computed", "input.l[0].k")
	case 5, 6:
		return "input.n" + r.oneOf("", ".x", ".y", ".none")
	}
	return "input." + r.oneOf("a", "a", "b", "c", "o", "f", "p", "s", "t", "r", "q", "m.k", "m", "l", "v", "none")
}

func (r *rules) drawConstant() string {
	return r.oneOf("0", "1", "2", "3", "-1", "0.5", `"a"`, `"ab"`, `""`, "true", "false", "null", "constant", "settings.least", "[]")
}

// drawQuestion draws a condition that gives no variable a value.
func (r *rules) drawQuestion(deep int) string {
	operator := func() string { return r.oneOf("==", "!=", "<", "<=", ">", ">=") }
	switch rapid.IntRange(0, 13).Draw(r.t, "question") {
	case 0, 1:
		return r.drawPath()
	case 2:
		return r.drawPath() + " " + operator() + " " + r.drawPath()
	case 3:
		return r.drawPath() + r.oneOf(" in ", " in ") + r.oneOf(`{"a", "ab"}`, "{1, 2}", "[true, 1]", `{"x": 1, "y": "a"}`, "input.v")
	case 4:
		return fmt.Sprintf("startswith(%s, %s)", r.drawPath(), r.oneOf(`"a"`, `"b"`))
	case 5:
		return r.oneOf("every x in input.l { x.q }", "count([y | some y in input.l; y.k > 1]) > 0", "is_number("+r.drawPath()+")")
	case 6, 7:
		if deep > 0 && r.helpers > 0 {
			return fmt.Sprintf("h%d", rapid.IntRange(0, r.helpers-1).Draw(r.t, "helper"))
		}
	case 8, 9, 10:
		if deep > 0 {
			inner := r.drawQuestion(deep - 1)
			if strings.HasPrefix(inner, "not ") || strings.HasPrefix(inner, "every ") || r.isChosen(8) {
				return "not { " + inner + "; " + r.drawQuestion(0) + " }"
			}
			return "not " + inner
		}
	}
	if r.isChosen(8) {
		// Behind another line, -1 would be subtracted from it.
		return strings.TrimPrefix(r.drawConstant(), "-") + " " + operator() + " " + r.drawPath()
	}
	return r.drawPath() + " " + operator() + " " + r.drawConstant()
}

// drawBody draws conditions, one in a line.
func (r *rules) drawBody(most int) []string {
	r.vars, r.elements = nil, nil
	var out []string
	for i := range rapid.IntRange(1, most).Draw(r.t, "conditions") {
		switch rapid.IntRange(0, 9).Draw(r.t, "condition") {
		case 0:
			name := fmt.Sprintf("v%d", i)
			out = append(out, name+" := "+r.drawPath())
			r.vars = append(r.vars, name)
		case 1:
			name := fmt.Sprintf("e%d", i)
			out = append(out, "some "+name+" in input.l")
			r.elements, r.vars = append(r.elements, name), append(r.vars, name)
		case 2:
			name := fmt.Sprintf("w%d", i)
			out = append(out, "some "+name+" in "+r.oneOf("[1, 2]", `{"a", "b"}`, "input.v", `{"x": 3}`))
			r.vars = append(r.vars, name)
		case 3:
			if len(out) > 0 {
				again := rapid.SampledFrom(out).Draw(r.t, "again")
				if !strings.Contains(again, ":=") && !strings.HasPrefix(again, "some ") {
					out = append(out, again)
					continue
				}
			}
			fallthrough
		default:
			out = append(out, r.drawQuestion(2))
		}
	}
	return out
}

// helperRules draws helpers, and rules of constants.
func (r *rules) helperRules() string {
	out := "constant := 2\n\nsettings := {\"least\": 1, \"name\": \"a\"}\n\ncomputed := input.a + 1\n\n"
	for i := range rapid.IntRange(0, 3).Draw(r.t, "helpers") {
		for range rapid.IntRange(1, 2).Draw(r.t, "definitions") {
			body := r.drawBody(2)
			if len(r.vars) > 0 { // strict: a variable must be used
				body = append(body, "["+strings.Join(r.vars, ", ")+"] != []")
			}
			out += fmt.Sprintf("h%d if {\n\t%s\n}\n\n", i, strings.Join(body, "\n\t"))
		}
		if r.isChosen(4) {
			out += fmt.Sprintf("default h%d := false\n\n", i)
		}
		r.helpers = i + 1
	}
	r.vars, r.elements = nil, nil
	return out
}
