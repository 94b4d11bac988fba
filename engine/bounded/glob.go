// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"strings"

	"github.com/gobwas/glob/syntax"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxGlobSteps is how many parts of a pattern glob.match may try in all restarts together. It
// remembers its position at each part until it is done.
const maxGlobSteps = 1 << 22

// checkGlobMatch bounds the steps of a match. A text is tried from the left. Where a part of the
// pattern does not match, the search starts again at the last star, one character or one occurrence of
// the star's next text further; once no star is left, at the last braces, with the next alternative.
func checkGlobMatch(c *call) error {
	if err := checkTexts(c); err != nil {
		return err
	}
	glob, s := c.textOperand(0), c.textOperand(2)
	if len(glob) > maxStates {
		return fmt.Errorf("its pattern has %d bytes, and may have %d", len(glob), maxStates)
	}
	if !strings.ContainsAny(glob, "*{") {
		return nil // there is only one way to match
	}
	if err := checkLimit(saturatingMultiply(strings.Count(glob, "*"), len(s)), MaxSteps, "steps"); err != nil {
		return err
	}
	_, free := c.operands[1].Value.(ast.Null)
	steps := saturatingMultiply(globTries(glob, s, free))
	if err := checkLimit(steps, maxGlobSteps, "steps"); err != nil {
		return err
	}
	return checkLimit(saturatingMultiply(steps, len(s)+1), MaxSteps, "steps")
}

// globSequence is the cost of consecutive parts of a pattern, in one of the alternatives of braces or
// outside all braces.
type globSequence struct {
	ways, parts        int // of the current alternative
	allWays, mostParts int // of the alternatives before it
}

// beginAlternative begins another alternative.
func (g *globSequence) beginAlternative() {
	g.allWays, g.mostParts = saturatingAdd(g.allWays, g.ways), max(g.mostParts, g.parts)
	g.ways, g.parts = 1, 0
}

// globTries returns how often a text is tried at most, with how many parts of the pattern at a time,
// and how many numbers describe a position in the pattern.
//
// The restarts of stars that follow each other are multiplied, and the alternatives of
// braces added up. But a star that matches all characters makes restarts at earlier stars unnecessary,
// unless there are braces with alternatives to try at each place.
func globTries(glob, text string, free bool) (tries, parts, deepest int) {
	open := []globSequence{{ways: 1}}
	restarts, braces := 1, false
	lex := syntax.NewLexer(glob)
	for token := lex.Next(); token.Type != syntax.EOF && token.Type != syntax.Error; {
		next := lex.Next()
		last := &open[len(open)-1]
		last.parts++
		switch token.Type {
		case syntax.Any, syntax.Super:
			for next.Type == syntax.Any || next.Type == syntax.Super { // stars in a row are one
				next = lex.Next()
			}
			n := globRestarts(next, text, len(open) > 1)
			restarts = saturatingAdd(restarts, n)
			last.ways = saturatingMultiply(last.ways, saturatingAdd(n, 1))
		case syntax.TermsOpen:
			braces = true
			open = append(open, globSequence{ways: 1})
			deepest = max(deepest, len(open)-1)
		case syntax.TermSeparator:
			last.beginAlternative()
		case syntax.TermsClose:
			if len(open) > 1 {
				last.beginAlternative()
				open = open[:len(open)-1]
				outer := &open[len(open)-1]
				outer.ways, outer.parts = saturatingMultiply(outer.ways, last.allWays), saturatingAdd(outer.parts, last.mostParts)
			}
		}
		token = next
	}
	tries = open[0].ways
	if free && !braces {
		tries = restarts
	}
	return tries, open[0].parts, 1 + 2*deepest
}

// globRestarts is how often the search starts again at a star before a token.
func globRestarts(next syntax.Token, text string, inBraces bool) int {
	switch {
	case next.Type == syntax.EOF && !inBraces:
		return 0 // the star matches all that is left
	case next.Type == syntax.Text:
		return strings.Count(text, next.Data[:1])
	}
	return len(text)
}
