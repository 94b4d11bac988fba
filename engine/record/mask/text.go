// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"bytes"
	"encoding/json"
	"strings"
)

// prefixes are the prefixes of credentials that services issue, which make leaked credentials
// recognizable.
var prefixes = [...]string{
	"ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "AKIA", "ASIA", "AIza", "sk-", "sk_live_", "rk_live_",
	"Bearer ", "bearer ", "Basic ", "npm_", "dckr_pat_", "hvs.", "hvb.",
}

// shortest is the least length of a text with such a prefix.
const shortest = 16

// LooksSecret reports whether a text looks like a secret, or contains one.
func LooksSecret(s string) bool {
	if len(s) >= shortest {
		for _, p := range prefixes {
			if strings.HasPrefix(s, p) {
				return true
			}
		}
	}
	switch {
	case strings.HasPrefix(s, "eyJ") && strings.Count(s, ".") == 2: // a JSON web token
		return true
	case strings.Contains(s, "PRIVATE KEY-----"):
		return true
	}
	return hasUserInfo(s) || hasSecretAssignment(s)
}

// hasUserInfo finds a URL with a password.
func hasUserInfo(s string) bool {
	for {
		_, rest, ok := strings.Cut(s, "://")
		if !ok {
			return false
		}
		authority := rest
		if i := strings.IndexAny(rest, "/?# \n\t\"'"); i >= 0 {
			authority = rest[:i]
		}
		user, _, ok := strings.Cut(authority, "@")
		if ok && strings.Contains(user, ":") {
			return true
		}
		s = rest
	}
}

// hasSecretAssignment finds --password=x, "password": "x" and password: x.
func hasSecretAssignment(s string) bool {
	for from := 0; ; {
		i := strings.IndexAny(s[from:], "=:")
		if i < 0 {
			return false
		}
		i += from
		from = i + 1
		if from == len(s) {
			return false
		}
		// A colon in the middle of a word belongs to an image, a host or a time.
		if s[i] == ':' && !strings.ContainsRune(" \t\n\"'{[", rune(s[from])) && (i == 0 || s[i-1] != '"' && s[i-1] != '\'') {
			continue
		}
		end := len(strings.TrimRight(s[:i], " \t\"'\\"))
		start := end
		for start > 0 && isWord(s[start-1]) {
			start--
		}
		if start < end && IsSecretName(s[start:end]) {
			return true
		}
	}
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// readable is the length from which a document may be too deep for encoding/json.
const readable = 10_000

// innerDocument returns a text that is itself a JSON document, without blanks, or nil. unclear is true
// if a text cannot be decoded but may be a document that is too deep.
func innerDocument(s string) (doc []byte, unclear bool) {
	if s == "" || !strings.ContainsRune("{[ \t\r\n", rune(s[0])) {
		return nil, false
	}
	text := bytes.TrimSpace([]byte(s))
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return nil, false
	}
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return nil, len(text) > readable
	}
	return out.Bytes(), false
}
