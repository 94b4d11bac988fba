// SPDX-License-Identifier: Apache-2.0

package support

import (
	"regexp"
	"strings"

	"github.com/regatta-sh/regatta/engine/record/mask"
)

// Names and what stands between them and their values. Quotes may be those of a document in a text. A flag and its value may be elements of a
// list.
var (
	assigned = regexp.MustCompile(`([A-Za-z0-9_.-]+)(\\*["']?\s*(?:=>|:=|=|:)\s*)`)
	flagged  = regexp.MustCompile(`(--?[A-Za-z][A-Za-z0-9_.-]*)(\\*["']?(?:\s*,\s*|\s+))`)
	// variable is the name of an environment variable or of a header, which has its value beside it.
	variable = regexp.MustCompile(`(?i)\bname\\*["']?\s*[:=]\s*\\*["']?([A-Za-z0-9_.-]+)(\\*["']?[,;\s]+\\*["']?value\\*["']?\s*[:=]\s*)`)
	// account is a flag with the name and the password of a user.
	account = regexp.MustCompile(`(?:^|[\s"'\[,])(-u|--user|--proxy-user)(\\*["']?(?:\s*,\s*|\s+)|=)`)
	// contents are those of a Secret or a ConfigMap.
	contents = regexp.MustCompile(`\b(data|Data|stringData|StringData|binaryData|BinaryData)(\\*["']?\s*[:=]\s*)(?:map\[|\{)`)
)

// replaceValues masks the values of what is called like a secret. The pattern has a name and what stands between. Where the end of a value is
// not clear, it is that of the line.
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
		if end == value { // what has no secret's name may have values with one
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

// isSecretAssigned reports whether what is assigned to a name is a secret, and not masked already.
func isSecretAssigned(name, between, rest string) bool {
	if !mask.IsSecretName(name) || strings.HasPrefix(strings.TrimLeft(rest, `"'\`), mask.Text) {
		return false
	}
	return between != ":" || mask.IsSecretName(lastWordOf(name)) // not an image called token-service
}

// isSecretFlag reports whether what follows a flag is its value, and a secret.
func isSecretFlag(name, _, rest string) bool {
	value := strings.TrimLeft(rest, `"'\`)
	if !mask.IsSecretName(name) || strings.HasPrefix(value, mask.Text) {
		return false
	}
	next, _, _ := strings.Cut(value, " ")
	return !strings.HasPrefix(next, "--") && (!strings.HasPrefix(next, "-") || len(next) > 2) // another flag
}

// phrase is a name whose value a person made up, in words: they go to the end of the line.
var phrase = regexp.MustCompile(`(?i)(?:pass(?:word|wd|phrase)?|pwd)\s*:[ \t]+$`)

// isFlagAlone reports whether a text is a flag whose value is the next one.
func isFlagAlone(v any) bool { return isSecretLine(flagLine, readText(v)) }

// isAccount reports whether what follows a flag has a password behind a colon.
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

// findValueEnd is where a value ends. It is where it begins if there is none. name and between are where what stands before it begins.
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

// isField reports whether what stands between a name and a value is that of a field of a map or a struct of Go.
func isField(between string) bool {
	return between == ":" || strings.HasSuffix(strings.ToLower(between), " value:")
}

// opening is what may stand before a bracket or a quote, such as the type of a list.
var opening = regexp.MustCompile(`^(?:&?(?:map|[\w.]*)?(?:\[\]|\[\w+\])*[\w.]*[\[({]|\\*["'])`)

// findOpening is where the bracket or the quote stands with which a value begins; the length of the text if it does not.
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

// isSeparated reports whether what follows a value is not a part of it.
func isSeparated(rest string) bool {
	rest = strings.TrimLeft(rest, `\`)
	if rest == "" || strings.IndexByte(" \t\r\n,;)]}", rest[0]) >= 0 {
		return true
	}
	return strings.IndexByte(`"'`, rest[0]) >= 0 && (len(rest) == 1 || strings.IndexByte(" \t\r\n,;)]}", rest[1]) >= 0)
}

// findPhraseEnd is where words without quotes end: where the quote does in which they are.
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

// findWordEnd is where a value without quotes ends.
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
			i = behind // it represents a blank, or for itself
		case '"', '\'':
			if i > from && isSeparated(text[i+1:]) && findQuoteAround(text[:from]) == c {
				return i
			}
			return lineEnd
		}
	}
	return lineEnd
}

// farthest is how far is looked back for a quote that is open.
const farthest = 1 << 14

// findQuoteAround is the quote in which a text ends; 0 for none, or where that is not known.
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

// findQuotedEnd is where a value in quotes ends, behind its last one; -1 if that is not clear.
func findQuotedEnd(text string, from int) int {
	slashes := countSlashes(text[from:])
	at := from + slashes
	quote := text[at]
	depth := 0
	for 1<<depth-1 < slashes {
		depth++
	}
	if 1<<depth-1 != slashes { // of no document in a text
		return -1
	}
	for i := at + 1; i < len(text); i++ {
		n := countSlashes(text[i:])
		if i += n; i == len(text) {
			break
		}
		switch {
		case text[i] != quote:
		case quote == '\'' && n > 0 && depth == 0: // a shell takes the one before for itself, others do not
			return -1
		case quote == '\'' && i+1 < len(text) && text[i+1] == quote: // of YAML
			i++
		case closesQuote(n, depth):
			return i + 1
		}
	}
	return -1
}

// closesQuote reports whether a quote behind so many backslashes ends what begins with one in a document so deep in others.
func closesQuote(slashes, depth int) bool {
	for ; slashes%2 == 1; depth-- {
		if depth == 0 {
			return false
		}
		slashes = (slashes - 1) / 2
	}
	return true
}

// findBracketsEnd is where a list or a map ends, behind its last bracket; -1 if that is not clear.
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
