// SPDX-License-Identifier: Apache-2.0

package message

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTexts(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a short text stays", "exited with 1", "exited with 1"},
		{"space around it goes", "\n no disk \n", "no disk"},
		{"a long one is cut", strings.Repeat("a", 15<<20), strings.Repeat("a", MostBytes)},
		{"no character is cut in two", strings.Repeat("a", MostBytes-1) + "é", strings.Repeat("a", MostBytes-1)},
		{"what is no UTF-8 is left out", "a\xffb", "ab"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Truncate(test.text); got != test.want {
				t.Errorf("%d bytes, want %d: %.60q", len(got), len(test.want), got)
			}
		})
	}
}

func TestEveryTextFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")), rapid.IntRange(0, 300).Draw(t, "times"))
		if got := Truncate(text); len(got) > MostBytes || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, valid: %v", len(got), utf8.ValidString(got))
		}
		if got := QuoteCommand([]string{text, text}); len(got) > MostBytes || !utf8.ValidString(got) {
			t.Fatalf("command: %d bytes, valid: %v", len(got), utf8.ValidString(got))
		}
	})
}
