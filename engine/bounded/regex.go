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

// size is what a regular expression takes once it is compiled.
type size struct {
	states int // with what it repeats as often as that is
	ranges int // ends of ranges of characters; a class has them once, however often it is repeated
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

// known remembers the sizes of regular expressions, which are asked about in each
// decision.
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
		return size{} // the function says so
	}
	if len(known.sizes) >= maxKnown || known.sizes == nil {
		known.sizes = map[string]size{}
	}
	n := sizeOf(re)
	known.sizes[expr] = n
	return n
}

// checkPattern is a regular expression of so many states.
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

// checkRegexSubject is what a function of regular expressions is asked about.
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

// checkRegexMatch texts match a pattern or not.
func checkRegexMatch(c *call) error { return c.checkRegexSubject(0, 1) }

// checkRegexFind texts have at most a match at each place, with each group of the pattern.
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

// matchedAndReplaced texts have the new text at each match, and in it the match as often
// as the text refers to it.
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
