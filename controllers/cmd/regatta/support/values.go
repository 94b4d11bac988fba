// SPDX-License-Identifier: Apache-2.0

package support

import (
	"regexp"
	"strings"

	"github.com/regatta-sh/regatta/engine/record/mask"
)

// Patterns of names, with the characters between them and their values. The quotes may be escaped, in a document inside a text. A flag and
// its value may be elements of a list.
var (
	assigned = regexp.MustCompile(`([A-Za-z0-9_.-]+)(\\*["']?\s*(?:=>|:=|=|:)\s*)`)
	flagged  = regexp.MustCompile(`(--?[A-Za-z][A-Za-z0-9_.-]*)(\\*["']?(?:\s*,\s*|\s+))`)
	// variable matches the name of an environment variable or of a header, followed by the key of its value.
	variable = regexp.MustCompile(`(?i)\bname\\*["']?\s*[:=]\s*\\*["']?([A-Za-z0-9_.-]+)(\\*["']?[,;\s]+\\*["']?value\\*["']?\s*[:=]\s*)`)
	// account matches a flag with the name and the password of a user.
	account = regexp.MustCompile(`(?:^|[\s"'\[,])(-u|--user|--proxy-user)(\\*["']?(?:\s*,\s*|\s+)|=)`)
	// contents matches the key of the contents of a Secret or a ConfigMap.
	contents = regexp.MustCompile(`\b(data|Data|stringData|StringData|binaryData|BinaryData)(\\*["']?\s*[:=]\s*)(?:map\[|\{)`)
)

// replaceValues masks the values after names of secrets. The pattern matches a name and the characters before the value. If the end of a
// value is not clear, it is the end of the line.
func (s *scrubber) replaceValues(text string, pattern *regexp.Regexp, isSecret func(name, between, rest string) bool) string {
	var out strings.Builder
	at := 0
	for at < len(text) {
		m := pattern.FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		from, between, value := at+m[0], at+m[4], at+m[5]
		end := value
		if isSecret(text[at+m[2]:at+m[3]], text[between:value], text[value:]) {
			end = findValueEnd(text, at+m[2], between, value)
		}
		if end == value { // the value of another name may contain names of secrets
			out.WriteString(text[at:value])
			at = value
			continue
		}
		s.hideValue(text[value:end])
		out.WriteString(text[at:from] + keep.Replace(text[from:value]) + mask.Text)
		at = end
	}
	return out.String() + text[at:]
}

// isSecretAssigned reports whether the value assigned to a name is a secret, and not masked already.
func isSecretAssigned(name, between, rest string) bool {
	if !mask.IsSecretName(name) || strings.HasPrefix(strings.TrimLeft(rest, `"'\`), mask.Text) {
		return false
	}
	return between != ":" || mask.IsSecretName(lastWordOf(name)) // not an image called token-service
}

// isSecretFlag reports whether the text after a flag is its value, and a secret.
func isSecretFlag(name, _, rest string) bool {
	value := strings.TrimLeft(rest, `"'\`)
	if !mask.IsSecretName(name) || strings.HasPrefix(value, mask.Text) {
		return false
	}
	next, _, _ := strings.Cut(value, " ")
	return !strings.HasPrefix(next, "--") && (!strings.HasPrefix(next, "-") || len(next) > 2) // another flag
}

// phrase matches a name whose value may be a passphrase of several words, up to the end of the line.
var phrase = regexp.MustCompile(`(?i)(?:pass(?:word|wd|phrase)?|pwd)\s*:[ \t]+$`)

// isFlagAlone reports whether a text is a flag whose value is the next one.
func isFlagAlone(v any) bool { return isSecretLine(flagLine, readText(v)) }

// isAccount reports whether the text after a flag has a password after a colon.
func isAccount(_, _, rest string) bool {
	user, _, _ := strings.Cut(strings.TrimLeft(rest, `"'\`), " ")
	return strings.Contains(user, ":") && !strings.HasPrefix(user, mask.Text)
}

// isVariable reports whether the value beside a name is a secret.
func isVariable(name, _, rest string) bool {
	return mask.IsSecretName(name) && !strings.HasPrefix(strings.TrimLeft(rest, `"'\`), mask.Text)
}

// isContents reports whether contents may be those of a Secret.
func isContents(_, _, rest string) bool { return !strings.HasPrefix(rest, mask.Text) }

// findValueEnd returns where a value ends, or where it begins if there is no value. name and between are where the name, and the
// characters between the name and the value, begin.
func findValueEnd(text string, name, between, value int) int {
	lineEnd := len(text)
	if i := strings.IndexByte(text[value:], '\n'); i >= 0 {
		lineEnd = value + i
	}
	end, unclear := -1, lineEnd
	switch first := value + findOpening(text[value:]); {
	case value == lineEnd:
		return value
	case first < len(text) && isQuote(text[first]):
		end, unclear = findQuotedEnd(text, value), len(text)
	case first < len(text):
		end = findBracketsEnd(text, first)
	case isField(text[between:value]) && strings.ContainsAny(text[:name], "[{"): // words follow each other without quotes
	case phrase.MatchString(text[name:value]):
		return findPhraseEnd(text, value, lineEnd)
	default:
		return findWordEnd(text, value, lineEnd)
	}
	if end < 0 {
		return unclear
	}
	if !isSeparated(text[end:]) {
		return max(lineEnd, end)
	}
	return end
}

// isQuote says whether a character is a quote.
func isQuote(c byte) bool { return c == '"' || c == '\'' }

// isField reports whether the characters between a name and a value are those that Go prints in a map or a
// struct.
func isField(between string) bool {
	return between == ":" || strings.HasSuffix(strings.ToLower(between), " value:")
}

// opening matches a bracket or a quote, with what Go may print before it, such as the type of a list.
var opening = regexp.MustCompile(`^(?:&?(?:map|[\w.]*)?(?:\[\]|\[\w+\])*[\w.]*[\[({]|\\*["'])`)

// findOpening returns the index of the bracket or quote that a value begins with, or the length of the text if there is
// none.
func findOpening(text string) int {
	found := opening.FindString(text)
	if found == "" {
		return len(text)
	}
	if text[0] == '[' || text[0] == '(' || text[0] == '{' {
		return 0
	}
	return len(found) - 1
}

// isSeparated reports whether the text after a value is not a part of the value.
func isSeparated(rest string) bool {
	rest = strings.TrimLeft(rest, `\`)
	if rest == "" || strings.IndexByte(" \t\r\n,;)]}", rest[0]) >= 0 {
		return true
	}
	return strings.IndexByte(`"'`, rest[0]) >= 0 && (len(rest) == 1 || strings.IndexByte(" \t\r\n,;)]}", rest[1]) >= 0)
}

// findPhraseEnd returns where words without quotes of their own end: at the end of the quotes around them.
func findPhraseEnd(text string, from, lineEnd int) int {
	around := findQuoteAround(text[:from])
	for i := from; i < lineEnd; i++ {
		if text[i] == '\\' {
			i++
		} else if around != 0 && text[i] == around {
			return i
		}
	}
	return lineEnd
}

// findWordEnd returns where a value without quotes ends.
func findWordEnd(text string, from, lineEnd int) int {
	for i := from; i < lineEnd; i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\r':
			return i
		case ',', ';':
			if i+1 == lineEnd || text[i+1] == ' ' || text[i+1] == '\t' {
				return i
			}
		case '\\':
			behind := i + countSlashes(text[i:])
			if behind < lineEnd && isQuote(text[behind]) {
				if isSeparated(text[behind+1:]) {
					return i
				}
				return lineEnd
			}
			i = behind // the escaped character is a blank, or the character itself
		case '"', '\'':
			if i > from && isSeparated(text[i+1:]) && findQuoteAround(text[:from]) == c {
				return i
			}
			return lineEnd
		}
	}
	return lineEnd
}

// farthest is how many bytes are searched backwards for an open quote.
const farthest = 1 << 14

// findQuoteAround returns the quote that is open at the end of a text; 0 if none is open, or if that is not
// known.
func findQuoteAround(text string) (in byte) {
	text = text[strings.LastIndexByte(text, '\n')+1:]
	if len(text) > farthest {
		return 0
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case in == 0 && (c == '"' || c == '\'' && (i == 0 || strings.IndexByte(" =:,[({", text[i-1]) >= 0)):
			in = c
		case c == in:
			in = 0
		}
	}
	return in
}

// countSlashes is how many backslashes a text begins with.
func countSlashes(text string) int { return len(text) - len(strings.TrimLeft(text, `\`)) }

// findQuotedEnd returns the index after the closing quote of a value; -1 if that is not clear.
func findQuotedEnd(text string, from int) int {
	slashes := countSlashes(text[from:])
	at := from + slashes
	quote := text[at]
	depth := 0
	for 1<<depth-1 < slashes {
		depth++
	}
	if 1<<depth-1 != slashes { // the quotes are not those of a document inside a text
		return -1
	}
	for i := at + 1; i < len(text); i++ {
		n := countSlashes(text[i:])
		if i += n; i == len(text) {
			break
		}
		switch {
		case text[i] != quote:
		case quote == '\'' && n > 0 && depth == 0: // a shell takes the backslash before the quote literally, other programs do not
			return -1
		case quote == '\'' && i+1 < len(text) && text[i+1] == quote: // an escaped quote of YAML
			i++
		case closesQuote(n, depth):
			return i + 1
		}
	}
	return -1
}

// closesQuote reports whether a quote after that many backslashes closes a text in a document that is nested that deep in
// others.
func closesQuote(slashes, depth int) bool {
	for ; slashes%2 == 1; depth-- {
		if depth == 0 {
			return false
		}
		slashes = (slashes - 1) / 2
	}
	return true
}

// findBracketsEnd returns the index after the last bracket of a list or a map; -1 if that is not clear.
func findBracketsEnd(text string, from int) int {
	closing := map[byte]byte{'[': ']', '(': ')', '{': '}'}
	var open []byte
	for i := from; i < len(text); i++ {
		switch c := text[i]; c {
		case '[', '(', '{':
			open = append(open, closing[c])
		case ']', ')', '}':
			if open[len(open)-1] != c {
				return -1
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1
			}
		case '\n':
			return -1
		case '"', '\'', '\\':
			n := countSlashes(text[i:])
			if i+n == len(text) || !isQuote(text[i+n]) {
				i += n
				continue
			}
			end := findQuotedEnd(text, i)
			if end < 0 || !isSeparated(text[end:]) && text[end] != ':' {
				return -1
			}
			i = end - 1
		}
	}
	return -1
}
