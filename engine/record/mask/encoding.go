// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"encoding/json"
	"slices"
)

// unquoteText reads a text as JSON has it.
func unquoteText(quoted []byte) string {
	plain := quoted[1 : len(quoted)-1]
	if !slices.Contains(plain, '\\') {
		return string(plain)
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is valid
	return s
}

func quoteText(s string) []byte {
	text, _ := json.Marshal(s) // texts always can be
	return text
}

// endOfText is where the text that begins at i has ended.
func endOfText(doc []byte, i int) int {
	for i++; doc[i] != '"'; i++ {
		if doc[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// endOf is where the value that begins at i has ended.
func endOf(doc []byte, i int) int {
	for depth := 0; i < len(doc); {
		switch doc[i] {
		case '"':
			i = endOfText(doc, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // that of the container of a number
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
