// SPDX-License-Identifier: Apache-2.0

// Package mask hides secrets in records before they leave the process.
//
// What is hidden: values of environment variables; values with a name like password, token, secret,
// credential or api-key; the same inside of texts that are JSON, YAML or arguments of a command; and
// texts that look like a secret under any name, such as a private key or a JSON web token. Users can
// add patterns.
//
// A text becomes [masked], a number 0, a list or an object an empty one, so that a record can be read
// back with its types. Fields of Kubernetes with the name of a Secret stay: they reveal nothing, and
// policies read them.
package mask

import (
	"fmt"
	"slices"
	"strings"
)

// Text replaces a masked text.
const Text = "[masked]"

// IsHidden reports whether a value, as encoding/json decodes it, may be what a mask left of one.
func IsHidden(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, Text)
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// Mask hides secrets. It is safe for concurrent use.
type Mask struct{ patterns []pattern }

// pattern is a path with wildcards, in lower case.
type pattern struct{ segments []string }

// longest is how many segments a pattern may have: its states are bits.
const longest = 62

// New makes a mask. Patterns hide more values: they are JSON pointers from the root of a line, such as
// /input/workload/annotations/example.com~1owner, in which * is any part of a name and ** any number
// of names: /input/**/env/*/value. Case does not matter. All values below a hidden one are hidden.
func New(patterns ...string) (*Mask, error) {
	m := &Mask{}
	for _, text := range patterns {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		m.patterns = append(m.patterns, p)
	}
	return m, nil
}

func parsePattern(text string) (pattern, error) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return pattern{}, fmt.Errorf("pattern %q of what is masked does not begin with /, as in /input/**/env/*/value", text)
	}
	segments := strings.Split(strings.ToLower(rest), "/")
	if len(segments) > longest {
		return pattern{}, fmt.Errorf("pattern %q of what is masked has %d names, want at most %d", text, len(segments), longest)
	}
	if !slices.Contains([]string{"input", "result", "*", "**"}, segments[0]) {
		return pattern{}, fmt.Errorf("pattern %q of what is masked begins with /%s, want /input, /result, /* or /**", text, segments[0])
	}
	for i, s := range segments {
		if s == "" || s != "**" && strings.Contains(s, "**") {
			return pattern{}, fmt.Errorf("pattern %q of what is masked has the name %q, want a name, * as a part of one, or ** alone", text, s)
		}
		segments[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
	}
	return pattern{segments: segments}, nil
}

// startStates returns the states before the first name.
func (p *pattern) startStates() uint64 { return p.skipWildcards(1) }

// skipWildcards adds the states after each **, since ** may match no name.
func (p *pattern) skipWildcards(states uint64) uint64 {
	for i, s := range p.segments {
		if s == "**" && states&(1<<i) != 0 {
			states |= 1 << (i + 1)
		}
	}
	return states
}

// nextStates returns the states after a name, given those before. The name is in lower case.
func (p *pattern) nextStates(states uint64, name string) uint64 {
	var next uint64
	for i, s := range p.segments {
		switch {
		case states&(1<<i) == 0:
		case s == "**":
			next |= 1 << i
		case globMatches(s, name):
			next |= 1 << (i + 1)
		}
	}
	return p.skipWildcards(next)
}

// isMatched reports whether the whole pattern has matched.
func (p *pattern) isMatched(states uint64) bool { return states&(1<<len(p.segments)) != 0 }

// globMatches matches a name; * is any run of characters.
func globMatches(pattern, name string) bool {
	head, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], after
	}
}
