package why

import (
	"fmt"
	"strings"

	"github.com/regatta-sh/regatta/engine/record"
)

// conditionsTold is how many conditions of a rule are told, the nearest first.
const conditionsTold = 3

// nearest tells what would have changed the answer.
func (t *text) nearest(n *record.Nearest) {
	if n == nil {
		return
	}
	name := "nearest"
	for _, near := range n.Now {
		says := map[string]string{"hold": "holds", "deny": "refuses", "exempt": "lets it through", "": "decides"}[near.Wish]
		t.row(name, fmt.Sprintf("%s %s while all of this is so:", ruleText(near), says))
		for _, c := range near.Conditions[:min(len(near.Conditions), conditionsTold)] {
			t.condition(c)
		}
		if more := len(near.Conditions) - conditionsTold; more > 0 {
			t.row("", fmt.Sprintf("  and %d more", more))
		}
		name = ""
	}
	for _, near := range n.Almost {
		says := map[string]string{"hold": "would hold", "deny": "would refuse", "exempt": "would let it through"}[near.Wish]
		t.row(name, fmt.Sprintf("%s %s if this were so too:", ruleText(near), says))
		for _, c := range near.Conditions {
			t.condition(c)
		}
		name = ""
	}
	if n.Partial {
		t.row(name, "There was no time to look at all rules.")
	}
}

func ruleText(n record.Near) string {
	if n.Title == "" {
		return n.Rule
	}
	return n.Rule + " - " + n.Title
}

// condition is told as facts are, without the word input.
func (t *text) condition(c record.Condition) {
	line := c.Text
	if c.Why != "" {
		line += ": " + c.Why
	}
	for i, l := range wrap(strings.ReplaceAll(line, "input.", ""), t.width-column-4) {
		if i > 0 {
			l = "  " + l
		}
		t.row("", "  "+l)
	}
}
