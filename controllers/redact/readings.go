// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Forms in which programs write bytes into texts.
var (
	inHex      = regexp.MustCompile(`[0-9A-Fa-f]{2,}`)
	inHexApart = regexp.MustCompile(`(?:0[xX][0-9A-Fa-f]{1,2}|[0-9A-Fa-f]{2})(?:[\s,:-]+(?:0[xX][0-9A-Fa-f]{1,2}|[0-9A-Fa-f]{2}))+`)
	inNumbers  = regexp.MustCompile(`[0-9]{1,3}(?:[\s,-]+[0-9]{1,3})*`)
	inBase64   = regexp.MustCompile(`[A-Za-z0-9+/_-]{2,}`)
	inURL      = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
)

// mostQuotes is how many levels of quoting are undone: each program that passes an error on may quote it again.
const mostQuotes = 3

// readingsOf returns a text, and the bytes that its parts encode: escaped as in quotes, in URLs and in HTML, in hex, as numbers such as
// fmt prints them, and in base64. Where an encoding groups characters, each possible start is tried, since a value may begin anywhere
// in a part.
func readingsOf(text string) [][]byte {
	out := [][]byte{[]byte(text)}
	quoted := text
	for range mostQuotes {
		if !strings.Contains(quoted, `\`) {
			break
		}
		read := unescapeQuotes(quoted)
		out, quoted = append(out, read), string(read)
	}
	if inURL.MatchString(text) || strings.Contains(text, "+") { // in a query a space is a plus
		read := unescapeURL(text)
		out = append(out, read, []byte(strings.ReplaceAll(string(read), "+", " ")), unescapeURL(strings.ReplaceAll(text, "+", " ")))
	}
	if strings.Contains(text, "&") {
		out = append(out, []byte(html.UnescapeString(text)))
	}
	for _, part := range inHexApart.FindAllString(text, -1) {
		var read []byte
		for _, one := range strings.FieldsFunc(part, isBetween) {
			if b, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(one), "0x"), 16, 8); err == nil {
				read = append(read, byte(b))
			}
		}
		out = append(out, read)
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
		for _, number := range strings.FieldsFunc(part, isBetween) {
			n, err := strconv.ParseUint(number, 10, 8)
			if err != nil { // it is no byte, and separates the bytes before and after it
				out, read = append(out, read), nil
				continue
			}
			read = append(read, byte(n))
		}
		out = append(out, read)
	}
	for _, part := range inBase64.FindAllString(text, -1) {
		part = inStandardAlphabet(part)
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

// inStandardAlphabet converts base64 in the alphabet of URLs to the standard alphabet.
func inStandardAlphabet(text string) string { return alphabets.Replace(text) }

var alphabets = strings.NewReplacer("-", "+", "_", "/")

// isBetween reports whether a character separates bytes that are written one by one.
func isBetween(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",:-", r) }

// unescapeURL undoes the escapes of a URL in a text. Other characters stay as they are.
func unescapeURL(text string) []byte {
	return inURL.ReplaceAllFunc([]byte(text), func(escaped []byte) []byte {
		b, _ := strconv.ParseUint(string(escaped[1:]), 16, 8) // the pattern has two digits
		return []byte{byte(b)}
	})
}

// unescapeQuotes undoes the escapes of Go and JSON in a quoted text.
func unescapeQuotes(text string) []byte {
	var out []byte
	for text != "" {
		r, isRune, rest, err := strconv.UnquoteChar(text, 0)
		switch {
		case err != nil: // for an invalid escape only the backslash is dropped
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
