// SPDX-License-Identifier: Apache-2.0

// Package whatif makes decisions again with other facts: it answers what would change if a fact were
// another. Nothing acts on these decisions, and no sink records them.
package whatif

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of the changes of one question.
const (
	// MaxChanges is how many facts may be changed at once.
	MaxChanges = 16
	// MaxBytes is how many bytes all changes may have together.
	MaxBytes = 4 << 10
	// maxSteps is how many steps the path of a fact may have.
	maxSteps = 32
)

// Change changes one fact of a decision.
type Change struct {
	// fact is the path of the fact in its usual form, and steps are its parts.
	fact  string
	steps []step
	// value is the text after the equals sign. It is empty if the fact is removed.
	value  string
	remove bool
}

// step is a part of a path: the name of a field or of a key, or an index of a list.
type step struct {
	name   string
	index  int
	isList bool
}

// String implements fmt.Stringer: the change as it is written on the command line.
func (c Change) String() string {
	if c.remove {
		return c.fact + "-"
	}
	return c.fact + "=" + c.value
}

// ParseChanges parses changes, each written as FACT=VALUE, or as FACT- to remove the fact. An error names the
// change and what to write in its place.
func ParseChanges(texts []string) ([]Change, error) {
	if len(texts) > MaxChanges {
		return nil, fmt.Errorf("%d facts are changed, and at most %d may be", len(texts), MaxChanges)
	}
	bytes := 0
	for _, text := range texts {
		bytes += len(text)
	}
	if bytes > MaxBytes {
		return nil, fmt.Errorf("the changed facts have %d bytes together, and may have at most %d", bytes, MaxBytes)
	}
	out := make([]Change, 0, len(texts))
	for _, text := range texts {
		c, err := parseChange(text)
		if err != nil {
			return nil, err
		}
		for _, other := range out {
			if other.fact == c.fact {
				return nil, fmt.Errorf("%s is changed twice", c.fact)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// parseChange parses one change. The first equals sign outside of brackets ends the path.
func parseChange(text string) (Change, error) {
	wrong := func(format string, args ...any) (Change, error) {
		return Change{}, fmt.Errorf("%q: %s; want FACT=VALUE, or FACT- to remove it, such as workload.annotations[\"approved\"]=r2", text, fmt.Sprintf(format, args...))
	}
	var c Change
	rest := strings.TrimPrefix(text, "input.")
	for {
		var s step
		var err error
		if strings.HasPrefix(rest, "[") {
			s, rest, err = cutBracket(rest)
		} else {
			s, rest, err = cutName(rest)
		}
		if err != nil {
			return wrong("%s", err)
		}
		if c.steps = append(c.steps, s); len(c.steps) > maxSteps {
			return wrong("a path has at most %d parts", maxSteps)
		}
		switch {
		case rest == "-":
			c.remove = true
		case strings.HasPrefix(rest, "="):
			c.value = rest[1:]
		case strings.HasPrefix(rest, "["):
			continue
		case len(rest) > 1 && rest[0] == '.' && rest[1] != '[':
			rest = rest[1:]
			continue
		case rest == "":
			return wrong("there is no value")
		default:
			return wrong("%q is no part of a path", rest)
		}
		c.fact = joinPath(c.steps)
		return c, nil
	}
}

// cutName cuts a name off the text, up to a dot, a bracket or an equals sign. A minus at the end of the whole text
// is not part of it.
func cutName(text string) (step, string, error) {
	end := strings.IndexAny(text, ".[]=\" \t\n")
	if end < 0 {
		end = len(text)
		if strings.HasSuffix(text, "-") {
			end--
		}
	}
	if end == 0 {
		return step{}, "", fmt.Errorf("the name of a fact is empty")
	}
	return step{name: text[:end]}, text[end:], nil
}

// cutBracket cuts a bracket with a key in quotes, or an index, off the text.
func cutBracket(text string) (step, string, error) {
	inside := text[1:]
	if strings.HasPrefix(inside, `"`) {
		quoted, err := strconv.QuotedPrefix(inside)
		if err != nil {
			return step{}, "", fmt.Errorf("a quoted key does not end")
		}
		key, err := strconv.Unquote(quoted)
		if err != nil {
			return step{}, "", fmt.Errorf("key %s cannot be read", quoted)
		}
		rest, closed := strings.CutPrefix(inside[len(quoted):], "]")
		if !closed {
			return step{}, "", fmt.Errorf("the bracket of key %s is not closed", quoted)
		}
		return step{name: key}, rest, nil
	}
	number, rest, closed := strings.Cut(inside, "]")
	index, err := strconv.ParseUint(number, 10, 31)
	if !closed || err != nil {
		return step{}, "", fmt.Errorf("a bracket has an index, such as [0], or a key in double quotes, such as [\"app\"]")
	}
	return step{index: int(index), isList: true}, rest, nil
}

// joinPath writes a path: keys that are no plain names are in brackets.
func joinPath(steps []step) string {
	var b strings.Builder
	for i, s := range steps {
		switch {
		case s.isList:
			fmt.Fprintf(&b, "[%d]", s.index)
		case isPlainName(s.name) && i > 0:
			b.WriteString("." + s.name)
		case isPlainName(s.name):
			b.WriteString(s.name)
		default:
			fmt.Fprintf(&b, "[%q]", s.name)
		}
	}
	return b.String()
}

// isPlainName reports whether a name may follow a dot in Rego.
func isPlainName(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
