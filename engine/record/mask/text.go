// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"bytes"
	"encoding/json"
	"strings"
)

// prefixes are those of credentials that services give out with one, so that
// they are found when they leak.
var prefixes = [...]string{
	"ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "AKIA", "ASIA", "AIza", "sk-", "sk_live_", "rk_live_",
	"Bearer ", "bearer ", "Basic ", "npm_", "dckr_pat_", "hvs.", "hvb.",
}

// shortest is how long a text with such a prefix is at least.
const shortest = 16

// LooksSecret reports whether a text is a secret by its looks, or has one in it.
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
		// A colon in the middle of a word is that of an image, a host or a time.
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

// readable is how long a document may be that is too deep for the JSON of Go.
const readable = 10_000

// innerDocument is a text that is a document of JSON itself, without blanks, or nil. It
// is unclear whether one that is not read is none, or too deep to be looked into.
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
