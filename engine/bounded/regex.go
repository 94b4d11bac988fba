// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"sync"
)

// maxStates is how many states a regular expression may have, together with the ends
// of the ranges of its classes of characters.
const maxStates = 10_000

// size is the size of a compiled regular expression.
type size struct {
	states int // repeated parts count as often as they repeat
	ranges int // ends of ranges of characters; a class counts once, however often it is repeated
}

func sizeOf(re *syntax.Regexp) size {
	n := size{states: 1}
	switch re.Op {
	case syntax.OpLiteral:
		n.states += len(re.Rune)
	case syntax.OpCharClass:
		n.ranges = len(re.Rune)
	}
	for _, sub := range re.Sub {
		s := sizeOf(sub)
		n.states, n.ranges = saturatingAdd(n.states, s.states), saturatingAdd(n.ranges, s.ranges)
	}
	if re.Op == syntax.OpRepeat {
		n.states = saturatingMultiply(n.states, max(re.Min, re.Max, 1))
	}
	return n
}

// known caches the sizes of regular expressions, which are needed in each decision.
var known struct {
	sync.Mutex
	sizes map[string]size
}

// maxKnown is how many regular expressions are remembered.
const maxKnown = 100

func sizeOfPattern(expr string) size {
	if !strings.ContainsAny(expr, `{[\(`) {
		return size{states: len(expr) + 1} // nothing in it is repeated, and it has no classes
	}
	known.Lock()
	defer known.Unlock()
	if n, ok := known.sizes[expr]; ok {
		return n
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return size{} // the function reports the error
	}
	if len(known.sizes) >= maxKnown || known.sizes == nil {
		known.sizes = map[string]size{}
	}
	n := sizeOf(re)
	known.sizes[expr] = n
	return n
}

// checkPattern bounds the size of a regular expression.
func checkPattern(c *call) error {
	if err := checkTexts(c); err != nil {
		return err
	}
	_, err := limitedPattern(c.textOperand(0))
	return err
}

func limitedPattern(expr string) (size, error) {
	if len(expr) > maxStates {
		return size{}, fmt.Errorf("its pattern has %d bytes, and may have %d", len(expr), maxStates)
	}
	n := sizeOfPattern(expr)
	if all := saturatingAdd(n.states, n.ranges); all > maxStates {
		return size{}, fmt.Errorf("its pattern has %d states and ends of ranges with all that it repeats, and may have %d", all, maxStates)
	}
	return n, nil
}

// checkRegexSubject bounds the expression and the text of a function of regular expressions.
func (c *call) checkRegexSubject(expr, s int) error {
	if err := checkTexts(c); err != nil {
		return err
	}
	n, err := limitedPattern(c.textOperand(expr))
	if err != nil {
		return err
	}
	return checkLimit(saturatingMultiply(n.states, len(c.textOperand(s))), MaxSteps, "steps")
}

// checkRegexMatch bounds a match of a text.
func checkRegexMatch(c *call) error { return c.checkRegexSubject(0, 1) }

// checkRegexFind bounds a search: a text has at most one match at each place, with each group of the pattern.
func checkRegexFind(c *call) error {
	if err := c.checkRegexSubject(0, 1); err != nil {
		return err
	}
	return c.limitedPlaces(0, 1)
}

func (c *call) limitedPlaces(expr, s int) error {
	groups := 1 + strings.Count(c.textOperand(expr), "(")
	return checkLimit(saturatingMultiply(len(c.textOperand(s)), groups), MaxPrinted, "places to match")
}

// matchedAndReplaced bounds a replacement: the result has the new text at each match, with the match
// as often as the new text refers to it.
func matchedAndReplaced(c *call) error {
	if err := c.checkRegexSubject(1, 0); err != nil {
		return err
	}
	if err := c.limitedPlaces(1, 0); err != nil {
		return err
	}
	s, with := c.textOperand(0), c.textOperand(2)
	written := saturatingMultiply(len(s)+1, len(with))
	again := saturatingMultiply(len(s), strings.Count(with, "$"))
	return checkLimit(saturatingAdd(saturatingAdd(len(s), written), again), MaxBytes, "bytes")
}
