// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"math/bits"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// texts are read or written once. What an operand is as a text is a few times as long
// as the texts that are in it.
func texts(c *call) error {
	m := meter{maxNodes: MaxPrinted, maxBytes: MaxBytes, cancel: c.cancel}
	return m.measure(c.operands...)
}

// text is an operand; empty if it is none, which the function complains about.
func (c *call) text(i int) string {
	s, _ := c.operands[i].Value.(ast.String)
	return string(s)
}

// limited is an error if a result, or what it takes, is beyond a limit.
func limited(n, limit int, what string) error {
	if n > limit || n < 0 {
		return fmt.Errorf("it would have more than %d %s, which is the limit", limit, what)
	}
	return nil
}

// times multiplies, and answers the largest number where that is more.
func times(factors ...int) int {
	const most = 1<<63 - 1
	out := uint64(1)
	for _, f := range factors {
		high, low := bits.Mul64(out, uint64(max(f, 0)))
		if high > 0 || low > most {
			return most
		}
		out = low
	}
	return int(out)
}

// plus adds, and answers the largest number where that is more.
func plus(a, b int) int {
	if c := a + b; c >= 0 {
		return c
	}
	return 1<<63 - 1
}

// concatenated texts have the first one between each two of the others.
func concatenated(c *call) error {
	if err := texts(c); err != nil {
		return err
	}
	list, ok := c.operands[1].Value.(interface{ Len() int })
	if !ok {
		return nil
	}
	m := meter{maxNodes: MaxPrinted, maxBytes: MaxBytes, cancel: c.cancel}
	if err := m.measure(c.operands[1]); err != nil {
		return err
	}
	return limited(plus(m.bytes, times(len(c.text(0)), list.Len())), MaxBytes, "bytes")
}

// maxWidth is how wide package fmt makes what it formats.
const maxWidth = 1_000_000

// formatted texts have each operand once, or as often as the format names it, and what
// widths and precisions fill up.
func formatted(c *call) error {
	m := meter{maxNodes: MaxPrinted, maxBytes: MaxBytes, cancel: c.cancel}
	if err := m.measure(c.operands...); err != nil {
		return err
	}
	format := c.text(0)
	length := m.bytes
	for at := strings.IndexByte(format, '%'); at >= 0; {
		verb := format[at+1:]
		end := strings.IndexFunc(verb, func(r rune) bool { return !strings.ContainsRune("+-# 0123456789.*[]", r) })
		if end < 0 {
			end = len(verb)
		}
		length = plus(length, filled(verb[:end]))
		if strings.Contains(verb[:end], "[") { // any operand, again
			length = plus(length, m.bytes)
		}
		next := strings.IndexByte(verb[min(end+1, len(verb)):], '%')
		if next < 0 {
			break
		}
		at += 1 + min(end+1, len(verb)) + next
	}
	return limited(length, MaxBytes, "bytes")
}

// filled is how many bytes the width and the precision of a verb add at most.
func filled(flags string) (bytes int) {
	n := 0
	for i := 0; i < len(flags); i++ {
		switch d := flags[i]; {
		case d == '*':
			bytes += maxWidth
		case d == '[': // it is a number of an operand
			for i+1 < len(flags) && flags[i] != ']' {
				i++
			}
		case '0' <= d && d <= '9':
			if n = n*10 + int(d-'0'); n > maxWidth {
				n = maxWidth
			}
			continue
		}
		bytes, n = bytes+n, 0
	}
	return bytes + n
}

// parsed texts become values, which take more memory than they do.
func parsed(c *call) error {
	return limited(len(c.text(0)), MaxParsed, "bytes to parse")
}

// divided texts have as many pieces as there are separators.
func divided(c *call) error {
	if err := texts(c); err != nil {
		return err
	}
	if len(c.text(0)) <= MaxPrinted {
		return nil
	}
	return limited(strings.Count(c.text(0), c.text(1)), MaxPrinted, "pieces")
}

// replaced texts have the new text in place of each old one.
func replaced(c *call) error {
	if err := texts(c); err != nil {
		return err
	}
	s, old, with := c.text(0), c.text(1), c.text(2)
	if times(len(s)+1, max(len(with), 1)) <= MaxBytes {
		return nil
	}
	return limited(plus(len(s), times(strings.Count(s, old), len(with))), MaxBytes, "bytes")
}

// replacedAll texts have each of the new texts in place of its old one.
func replacedAll(c *call) error {
	if err := texts(c); err != nil {
		return err
	}
	pairs, ok := c.operands[0].Value.(ast.Object)
	s := c.text(1)
	if !ok {
		return nil
	}
	if err := limited(times(len(s)+1, pairs.Len()), MaxSteps, "steps"); err != nil {
		return err
	}
	length := len(s)
	pairs.Foreach(func(k, v *ast.Term) {
		old, _ := k.Value.(ast.String)
		with, _ := v.Value.(ast.String)
		length = plus(length, times(strings.Count(s, string(old)), len(with)))
	})
	return limited(length, MaxBytes, "bytes")
}

// searched texts are compared with another one at each place.
func searched(c *call) error {
	if err := texts(c); err != nil {
		return err
	}
	return limited(times(len(c.text(0)), len(c.text(1))), MaxSteps, "steps")
}

// searchedAll texts have a place for each of the other one that is in them.
func searchedAll(c *call) error {
	if err := searched(c); err != nil {
		return err
	}
	return limited(len(c.text(0)), MaxPrinted, "bytes to search")
}

// maxStates is how many states a regular expression may have.
const maxStates = 10_000

// states counts those of a regular expression, with what it repeats as often as that is.
func states(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n = plus(n, states(sub))
	}
	if re.Op == syntax.OpRepeat {
		return times(n, max(re.Min, re.Max, 1))
	}
	return n
}

// known remembers how many states regular expressions have, which are asked about in
// each decision.
var known struct {
	sync.Mutex
	states map[string]int
}

// maxKnown is how many regular expressions are remembered.
const maxKnown = 100

func statesOf(expr string) int {
	if !strings.Contains(expr, "{") {
		return len(expr) + 1 // nothing in it is repeated
	}
	known.Lock()
	defer known.Unlock()
	if n, ok := known.states[expr]; ok {
		return n
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0 // the function says so
	}
	if len(known.states) >= maxKnown || known.states == nil {
		known.states = map[string]int{}
	}
	n := states(re)
	known.states[expr] = n
	return n
}

// pattern is a regular expression of so many states.
func pattern(c *call) error {
	if err := texts(c); err != nil {
		return err
	}
	return limitedPattern(c.text(0))
}

func limitedPattern(expr string) error {
	if len(expr) > maxStates {
		return fmt.Errorf("its pattern has %d bytes, and may have %d", len(expr), maxStates)
	}
	if n := statesOf(expr); n > maxStates {
		return fmt.Errorf("its pattern has %d states with all that it repeats, and may have %d", n, maxStates)
	}
	return nil
}

// subject is what a function of regular expressions is asked about.
func (c *call) subject(expr, s int) error {
	if err := texts(c); err != nil {
		return err
	}
	if err := limitedPattern(c.text(expr)); err != nil {
		return err
	}
	if err := limited(times(statesOf(c.text(expr)), len(c.text(s))), MaxSteps, "steps"); err != nil {
		return err
	}
	groups := 1 + strings.Count(c.text(expr), "(")
	return limited(times(len(c.text(s)), groups), MaxNodes, "places to match")
}

// matched texts have at most a match at each place, with each group of the pattern.
func matched(c *call) error { return c.subject(0, 1) }

// matchedAndReplaced texts have the new text at each match, and in it the match as often
// as the text refers to it.
func matchedAndReplaced(c *call) error {
	if err := c.subject(1, 0); err != nil {
		return err
	}
	s, with := c.text(0), c.text(2)
	written := times(len(s)+1, len(with))
	again := times(len(s), strings.Count(with, "$"))
	return limited(plus(plus(len(s), written), again), MaxBytes, "bytes")
}

// globbed texts are tried at each place for each part of a pattern that is of any
// length: with n of these the steps grow as a power of the text's length.
func globbed(c *call) error {
	if err := texts(c); err != nil {
		return err
	}
	glob, s := c.text(0), c.text(2)
	if len(glob) > maxStates {
		return fmt.Errorf("its pattern has %d bytes, and may have %d", len(glob), maxStates)
	}
	steps := len(glob)
	for range bits.Len(uint(strings.Count(glob, "*") + strings.Count(glob, "{"))) {
		steps = times(steps, len(s)+1)
	}
	return limited(steps, MaxSteps, "steps")
}
