// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/engine/record/mask"
)

// Patterns of secrets within a line.
var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)`)
	endOfKey   = regexp.MustCompile(`(?s)^.*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	webToken   = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*`)
	header     = regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]*(?:token|key|auth)[a-z-]*)(\\?["']?\s*[:=])[^\n]*`)
	scheme     = regexp.MustCompile(`(?i)\b(bearer|basic|digest|negotiate)(\s+\\*["']?)[A-Za-z0-9._~+/=-]{6,}[^\s"'\\,]*`)
	// Before the @ may be a token alone, or a password with any characters that does not begin like a port. A URL may be signed in its
	// query, whose & encoders of JSON and HTML escape.
	userInfo   = regexp.MustCompile(`://(?:[^/\s"'?#:@]*:(?:[^\s"'0-9/]|[0-9]+[^\s"'0-9/])[^\s"']*|[^/\s"'?#]+)@`)
	quotedInfo = regexp.MustCompile(`://[^/\s"'?#:@]*:[0-9]*[^\s/0-9@][^\s/@]*@`)        // with quotes in the password
	source     = regexp.MustCompile(`[^\s:/@"'=]+:[^\s"'=]+@((?:tcp|tcp4|tcp6|unix)\()`) // of a database, as drivers of Go write it
	signature  = regexp.MustCompile(`(?i)((?:[?&;]|\\u0026)(?:[a-z-]*signature|sig|key|code|auth)=)[^&;\s"'#\\]+`)
	word       = regexp.MustCompile(`[^\s"'=,;(){}\[\]<>]+`)
)

// kept are marks that replace the characters before a value that is masked already. Without the marks package mask, which scans whole
// documents, would take the whole text for a secret. They are from a private use area of Unicode.
var (
	keep    = strings.NewReplacer("=", "\uE000", ":", "\uE001", " ", "\uE002")
	restore = strings.NewReplacer("\uE000", "=", "\uE001", ":", "\uE002", " ")
)

// maskText masks what looks like a secret in a text, and keeps the rest.
func (s *scrubber) maskText(text string) string { return restore.Replace(s.markSecrets(text)) }

// markSecrets masks like maskText, and leaves marks before the masked values.
func (s *scrubber) markSecrets(text string) string {
	if text == "" {
		return text
	}
	text = s.maskEmbedded(text)
	if strings.Contains(text, "\n") {
		text = s.hideBlocks(text)
	}
	lower := strings.ToLower(text)
	if strings.Contains(text, "PRIVATE KEY") {
		text = privateKey.ReplaceAllString(text, mask.Text)
		text = endOfKey.ReplaceAllString(text, mask.Text) // of a key whose beginning was cut off
	}
	if strings.Contains(text, "eyJ") {
		text = webToken.ReplaceAllString(text, mask.Text)
	}
	if hasAny(lower, "authorization", "cookie", "x-") {
		text = header.ReplaceAllStringFunc(text, func(found string) string {
			parts := header.FindStringSubmatch(found)
			return parts[1] + keep.Replace(parts[2]+" ") + mask.Text
		})
	}
	if hasAny(lower, "bearer", "basic", "digest", "negotiate") {
		text = scheme.ReplaceAllStringFunc(text, func(found string) string {
			parts := scheme.FindStringSubmatch(found)
			return parts[1] + keep.Replace(parts[2]) + mask.Text
		})
	}
	if strings.Contains(text, "://") {
		text = userInfo.ReplaceAllString(text, "://"+mask.Text+"@")
		text = quotedInfo.ReplaceAllString(text, "://"+mask.Text+"@")
		text = signature.ReplaceAllStringFunc(text, func(found string) string {
			name, _, _ := strings.Cut(found, "=")
			return name + keep.Replace("=") + mask.Text
		})
	}
	text = source.ReplaceAllString(text, mask.Text+"@$1")
	// Most lines of a log have no name like that of a secret.
	if mask.IsSecretName(text) || hasAny(lower, "pass", "pwd", "dsn", "pat") {
		if strings.Contains(lower, "secret") {
			text = s.replaceValues(text, contents, isContents)
		}
		text = s.replaceValues(text, variable, isVariable)
		text = s.replaceValues(text, assigned, isSecretAssigned)
		text = s.replaceValues(text, flagged, isSecretFlag)
	}
	if hasAny(lower, "-u", "-user") {
		text = s.replaceValues(text, account, isAccount)
	}
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if strings.Contains(w, "masked") || !mask.LooksSecret(w) {
			return w
		}
		s.addHidden(w)
		return mask.Text
	})
}

func hasAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// quoted matches the quoted texts of a list.
var quoted = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"|'([^']*)'`)

// hideValue hides a value, or each element of a list, in the whole archive.
func (s *scrubber) hideValue(value string) {
	texts := []string{value}
	if strings.HasPrefix(value, "[") || strings.HasPrefix(value, "(") {
		between := ","
		if strings.HasSuffix(value, "]") || strings.HasSuffix(value, ")") {
			between = ", "
		}
		texts = strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(between, r) })
		for _, m := range quoted.FindAllStringSubmatch(value, -1) {
			texts = append(texts, m[1]+m[2])
		}
	}
	for _, text := range texts {
		s.addHidden(strings.Trim(text, `"'\[]() `))
	}
}

// lastWordOf is the last word of a name.
func lastWordOf(name string) string { return name[strings.LastIndexAny(name, "-_./")+1:] }

// maskEmbedded scrubs a text that is a JSON document by the names of its fields.
func (s *scrubber) maskEmbedded(text string) string {
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		return text
	}
	const deepest = 10_000 // a larger document is masked by patterns alone
	var v any
	if len(trimmed) > deepest*10 || json.Unmarshal([]byte(trimmed), &v) != nil {
		return text
	}
	out, err := json.Marshal(s.maskValue(v, nil))
	if err != nil {
		return text
	}
	return restore.Replace(string(s.line.MaskJSON("input", out)))
}

// maskLog masks a log, line by line. A private key or a document may be printed over several.
func (s *scrubber) maskLog(text []byte) []byte {
	text = privateKey.ReplaceAll(text, []byte(mask.Text))
	text = endOfKey.ReplaceAll(text, []byte(mask.Text)) // of a key whose beginning was cut off
	text = []byte(s.hideBlocks(string(text)))
	var out bytes.Buffer
	out.Grow(len(text))
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		out.WriteString(s.maskText(strings.ToValidUTF8(string(line), "\uFFFD")))
		out.WriteByte('\n')
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// newReplacer returns a replacer of all hidden texts, in the forms in which programs write texts.
func (s *scrubber) newReplacer() *strings.Replacer {
	for _, text := range s.line.HiddenTexts() {
		s.addHidden(text)
	}
	forms := map[string]bool{}
	for text := range s.hidden {
		if s.public[text] {
			continue
		}
		quoted, _ := json.Marshal(text) // a text can always be marshaled
		inner := string(quoted[1 : len(quoted)-1])
		again, _ := json.Marshal(inner)
		for _, form := range []string{
			text, inner, string(again[1 : len(again)-1]), url.QueryEscape(text), url.PathEscape(text), html.EscapeString(text), hex.EncodeToString([]byte(text)),
			strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(text)), "="), strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(text)), "="),
		} {
			forms[form] = true
		}
	}
	// The longest first: a text may contain another one.
	sorted := make([]string, 0, len(forms))
	for form := range forms {
		sorted = append(sorted, form)
	}
	slices.SortFunc(sorted, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(sorted))
	for _, form := range sorted {
		pairs = append(pairs, form, mask.Text)
	}
	return strings.NewReplacer(pairs...)
}

// maskDecision scrubs a record of a decision, which is a JSON document in one line.
func (s *scrubber) maskDecision(line []byte) string {
	var v any
	if json.Unmarshal(line, &v) != nil {
		return leftOut(string(line))
	}
	out, err := json.Marshal(s.maskValue(v, nil))
	if err != nil {
		return leftOut(string(line))
	}
	return restore.Replace(string(s.line.MaskJSON("input", out)))
}
