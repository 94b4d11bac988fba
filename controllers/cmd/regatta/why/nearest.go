// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"

	"github.com/regatta-sh/regatta/engine/nearest"
)

// conditionsTold is how many conditions of a rule are printed, the nearest first.
const conditionsTold = 3

// writeNearest prints what would have changed the answer.
func (t *text) writeNearest(n *nearest.Result) {
	if n == nil {
		return
	}
	name := "nearest"
	for _, near := range n.Now {
		says := map[string]string{"hold": "holds", "deny": "refuses", "exempt": "lets it through", "": "decides"}[near.Wish]
		t.writeRow(name, fmt.Sprintf("%s %s while all of this is so:", ruleText(near), says))
		for _, c := range near.Conditions[:min(len(near.Conditions), conditionsTold)] {
			t.writeCondition(c)
		}
		if more := len(near.Conditions) - conditionsTold; more > 0 {
			t.writeRow("", fmt.Sprintf("  and %d more", more))
		}
		name = ""
	}
	for _, near := range n.Almost {
		says := map[string]string{"hold": "would hold", "deny": "would refuse", "exempt": "would let it through"}[near.Wish]
		t.writeRow(name, fmt.Sprintf("%s %s if this were so too:", ruleText(near), says))
		for _, c := range near.Conditions {
			t.writeCondition(c)
		}
		name = ""
	}
	if n.Partial {
		t.writeRow(name, "There was no time to look at all rules.")
	}
}

func ruleText(n nearest.Rule) string {
	if n.Title == "" {
		return n.Rule
	}
	return n.Rule + " - " + n.Title
}

// writeCondition prints a condition as facts are printed, without the word input. The
// conditions of its helpers follow below it.
func (t *text) writeCondition(c nearest.Condition) { t.writeNestedCondition(c, 1) }

// writeNestedCondition prints a condition, indented by its depth.
func (t *text) writeNestedCondition(c nearest.Condition, depth int) {
	line := c.Text
	if c.Why != "" {
		line += ": " + c.Why
	}
	helpers := depth + 1
	if c.Why == "" && len(c.Helpers) == 1 && c.Helpers[0].Name == c.Text {
		helpers = depth // one line is enough for both
	} else {
		t.writeIndented(line, depth)
	}
	for _, h := range c.Helpers {
		t.writeIndented(helperText(h), helpers)
		for _, c := range h.Conditions {
			t.writeNestedCondition(c, helpers+1)
		}
	}
	if c.More > 0 {
		t.writeIndented(fmt.Sprintf("and %d more", c.More), depth+1)
	}
}

// helperText is the line before the conditions of a helper.
func helperText(h nearest.Helper) string {
	line := h.Name
	if h.Text != "" && h.Text != h.Name {
		line += " is " + h.Text
	}
	if h.Place != "" {
		line += " (" + h.Place + ")"
	}
	if h.Why != "" {
		line += ": " + h.Why
	}
	switch {
	case len(h.Conditions) == 0:
		return line
	case h.Why != "":
		line += ","
	}
	if h.Holds {
		return line + " while all of this is so:"
	}
	return line + " if this were so too:"
}

func (t *text) writeIndented(line string, depth int) {
	indent := strings.Repeat("  ", depth)
	for i, l := range wrapText(strings.ReplaceAll(line, "input.", ""), max(t.width-column-2-len(indent), narrowest)) {
		if i > 0 {
			l = "  " + l
		}
		t.lines = append(t.lines, strings.Repeat(" ", column)+indent+l)
	}
}

// narrowest is the smallest width that a line is wrapped to.
const narrowest = 30
