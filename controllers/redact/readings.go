// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Forms in which programs write bytes into texts.
var (
	inHex     = regexp.MustCompile(`[0-9A-Fa-f]{2,}`)
	inNumbers = regexp.MustCompile(`[0-9]{1,3}(?:[ ,]+[0-9]{1,3})*`)
	inBase64  = regexp.MustCompile(`[A-Za-z0-9+/_-]{2,}`)
)

// readingsOf are a text and the bytes that parts of it stand for: escaped, in hex, as numbers such as fmt writes them, and in base64.
// Nothing is known of where a value begins in a part, so that each place is tried where a form groups characters.
func readingsOf(text string) [][]byte {
	out := [][]byte{[]byte(text)}
	if strings.Contains(text, `\`) {
		out = append(out, unescapeQuotes(text))
	}
	for _, part := range inHex.FindAllString(text, -1) {
		for _, from := range []string{part, part[1:]} {
			if read, err := hex.DecodeString(from[:len(from)/2*2]); err == nil {
				out = append(out, read)
			}
		}
	}
	for _, part := range inNumbers.FindAllString(text, -1) {
		var read []byte
		for _, number := range strings.FieldsFunc(part, func(r rune) bool { return r == ' ' || r == ',' }) {
			n, err := strconv.ParseUint(number, 10, 8)
			if err != nil { // it is no byte, and parts what comes before from what comes after
				out, read = append(out, read), nil
				continue
			}
			read = append(read, byte(n))
		}
		out = append(out, read)
	}
	for _, part := range inBase64.FindAllString(text, -1) {
		part = strings.NewReplacer("-", "+", "_", "/").Replace(part)
		for begin := range min(4, len(part)) {
			from := part[begin:]
			if len(from)%4 == 1 { // such as the s of a plural
				from = from[:len(from)-1]
			}
			if read, err := base64.RawStdEncoding.DecodeString(from); err == nil {
				out = append(out, read)
			}
		}
	}
	return out
}

// unescapeQuotes is a text as it was before it was quoted, as Go and JSON quote.
func unescapeQuotes(text string) []byte {
	var out []byte
	for text != "" {
		r, isRune, rest, err := strconv.UnquoteChar(text, 0)
		switch {
		case err != nil: // what is no escape stands for itself, but for its backslash
			if text[0] != '\\' {
				out = append(out, text[0])
			}
			text = text[1:]
			continue
		case isRune:
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, byte(r))
		}
		text = rest
	}
	return out
}
