// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"unicode"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkTexts bounds operands that are read or written once. An operand written as text is a few times
// as long as the texts in it.
func checkTexts(c *call) error {
	m, err := c.measureTexts(c.operands...)
	if err != nil {
		return err
	}
	return checkLimit(m.printedBytes(len(c.operands)), MaxBytes, "bytes")
}

// measureTexts measures values against the limits for values that are written as text.
func (c *call) measureTexts(values ...*ast.Term) (meter, error) {
	m := meter{maxNodes: MaxPrinted, maxBytes: MaxBytes, cancel: c.cancel}
	err := m.measureTerms(values...)
	return m, err
}

// maxMarks is how many bytes a value has as a text besides its own text: null, true,
// brackets, quotes and the separator from the next value.
const maxMarks = 8

// printedBytes is how many bytes the measured values take as texts. whole is how many of them are not
// parts of others, and so have no marks.
func (m *meter) printedBytes(whole int) int {
	return saturatingAdd(m.bytes, saturatingMultiply(maxMarks, m.nodes-whole))
}

// textOperand returns an operand that is a text; empty if it is no text, which the function reports.
func (c *call) textOperand(i int) string {
	s, _ := c.operands[i].Value.(ast.String)
	return string(s)
}

// checkLimit returns an error if a result, or its cost, is beyond a limit.
func checkLimit(n, limit int, what string) error {
	if n > limit || n < 0 {
		return fmt.Errorf("it would have more than %d %s, which is the limit", limit, what)
	}
	return nil
}

// saturatingMultiply multiplies, and returns the largest number on overflow.
func saturatingMultiply(factors ...int) int {
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

// saturatingAdd adds, and returns the largest number on overflow.
func saturatingAdd(a, b int) int {
	if c := a + b; c >= 0 {
		return c
	}
	return 1<<63 - 1
}

// checkConcatenation bounds a join of texts: the first one is between each two of the others.
func checkConcatenation(c *call) error {
	m, err := c.measureTexts(c.operands...)
	if err != nil {
		return err
	}
	list, ok := c.operands[1].Value.(interface{ Len() int })
	if !ok {
		return nil
	}
	return checkLimit(saturatingAdd(m.bytes-len(c.textOperand(0)), saturatingMultiply(len(c.textOperand(0)), list.Len())), MaxBytes, "bytes")
}

// maxWidth is the largest width that package fmt uses.
const maxWidth = 1_000_000

// maxFloat is how many bytes package fmt writes at most for a number without an exponent and without a
// precision.
const maxFloat = 320

// checkFormat bounds formatted text: it has each operand once, or as often as the format names it, and
// the padding of widths and precisions.
func checkFormat(c *call) error {
	m, err := c.measureTexts(c.operands...)
	if err != nil {
		return err
	}
	args := m.printedBytes(len(c.operands))
	if list, ok := c.operands[1].Value.(*ast.Array); ok {
		list.Foreach(func(t *ast.Term) {
			if n, ok := t.Value.(ast.Number); ok && strings.ContainsAny(string(n), "eE") {
				args = saturatingAdd(args, maxFloat)
			}
		})
	}
	format, length := c.textOperand(0), args
	for at := strings.IndexByte(format, '%'); at >= 0; {
		verb := format[at+1:]
		end := strings.IndexFunc(verb, func(r rune) bool { return !strings.ContainsRune("+-# 0123456789.*[]", r) })
		if end < 0 {
			end = len(verb)
		}
		length = saturatingAdd(length, paddingBytes(verb[:end]))
		if strings.Contains(verb[:end], "[") { // any operand, again
			length = saturatingAdd(length, args)
		}
		next := strings.IndexByte(verb[min(end+1, len(verb)):], '%')
		if next < 0 {
			break
		}
		at += 1 + min(end+1, len(verb)) + next
	}
	return checkLimit(length, MaxBytes, "bytes")
}

// paddingBytes is how many bytes the width and the precision of a verb add at most.
func paddingBytes(flags string) (bytes int) {
	n := 0
	for i := 0; i < len(flags); i++ {
		switch d := flags[i]; {
		case d == '*':
			bytes += maxWidth
		case d == '[': // it is the index of an operand
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

// checkParsedText bounds a text that becomes a value, which takes more memory than the text.
func checkParsedText(c *call) error {
	return checkLimit(len(c.textOperand(0)), MaxParsed, "bytes to parse")
}

// parsedNumbers checks the numbers in a JSON text that becomes a value.
func parsedNumbers(c *call) error {
	if err := checkParsedText(c); err != nil {
		return err
	}
	for s := c.textOperand(0); s != ""; {
		at := strings.IndexAny(s, `"-0123456789`)
		if at < 0 {
			return nil
		}
		if s = s[at:]; s[0] == '"' {
			s = s[lengthOfString(s):]
			continue
		}
		rest := strings.TrimLeft(s, "+-.0123456789eE")
		if err := CheckNumber(ast.Number(s[:len(s)-len(rest)])); err != nil {
			return err
		}
		s = rest
	}
	return nil
}

// lengthOfString is the length in bytes of the JSON string at the beginning of a text.
func lengthOfString(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// checkNumeral bounds a text that becomes a number, with or without a unit.
func checkNumeral(c *call) error {
	if err := checkTexts(c); err != nil {
		return err
	}
	n := strings.TrimSpace(strings.ReplaceAll(c.textOperand(0), `"`, ""))
	n = strings.TrimRightFunc(n, unicode.IsLetter)
	if len(n) > MaxDigits {
		return fmt.Errorf("its text has a number of %d digits, and may have %d", len(n), MaxDigits)
	}
	exp, err := strconv.Atoi(n[strings.LastIndexAny(n, "eEpP")+1:])
	if !strings.ContainsAny(n, "eEpP") || errors.Is(err, strconv.ErrSyntax) {
		return nil // the function reports the error
	}
	if err != nil || exp > MaxDigits || exp < -MaxDigits {
		return fmt.Errorf("its text has a number of an exponent beyond %d, and may have none", MaxDigits)
	}
	return nil
}

// checkSplit bounds a split: there is a piece for each separator.
func checkSplit(c *call) error {
	if err := checkTexts(c); err != nil {
		return err
	}
	if len(c.textOperand(0)) <= MaxPrinted {
		return nil
	}
	return checkLimit(strings.Count(c.textOperand(0), c.textOperand(1)), MaxPrinted, "pieces")
}

// checkReplacement bounds a replacement: the result has the new text in place of each old one.
func checkReplacement(c *call) error {
	if err := checkTexts(c); err != nil {
		return err
	}
	s, old, with := c.textOperand(0), c.textOperand(1), c.textOperand(2)
	if saturatingMultiply(len(s)+1, max(len(with), 1)) <= MaxBytes {
		return nil
	}
	return checkLimit(saturatingAdd(len(s), saturatingMultiply(strings.Count(s, old), len(with))), MaxBytes, "bytes")
}

// replacedAll bounds a replacement of several texts.
func replacedAll(c *call) error {
	if err := checkTexts(c); err != nil {
		return err
	}
	pairs, ok := c.operands[0].Value.(ast.Object)
	s := c.textOperand(1)
	if !ok {
		return nil
	}
	if err := checkLimit(saturatingMultiply(len(s)+1, pairs.Len()), MaxSteps, "steps"); err != nil {
		return err
	}
	length := len(s)
	pairs.Foreach(func(k, v *ast.Term) {
		old, _ := k.Value.(ast.String)
		with, _ := v.Value.(ast.String)
		length = saturatingAdd(length, saturatingMultiply(strings.Count(s, string(old)), len(with)))
	})
	return checkLimit(length, MaxBytes, "bytes")
}

// checkSearch bounds a search: a text is compared with another one at each place.
func checkSearch(c *call) error {
	if err := checkTexts(c); err != nil {
		return err
	}
	return checkLimit(saturatingMultiply(len(c.textOperand(0)), len(c.textOperand(1))), MaxSteps, "steps")
}

// searchedAll bounds a search that returns each place.
func searchedAll(c *call) error {
	if err := checkSearch(c); err != nil {
		return err
	}
	return checkLimit(len(c.textOperand(0)), MaxPrinted, "bytes to search")
}
