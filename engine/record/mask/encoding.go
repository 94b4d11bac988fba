// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"encoding/json"
	"slices"
)

// unquoteText decodes a JSON string.
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
	text, _ := json.Marshal(s) // a text can always be encoded
	return text
}

// endOfText returns the index after the JSON string that begins at i.
func endOfText(doc []byte, i int) int {
	for i++; doc[i] != '"'; i++ {
		if doc[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// endOf returns the index after the value that begins at i.
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
			if depth == 0 { // the closing bracket is that of the container of a number
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
