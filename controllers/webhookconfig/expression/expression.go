// SPDX-License-Identifier: Apache-2.0

// Package expression writes CEL expressions for match conditions of webhook configurations.
package expression

import (
	"fmt"
	"slices"
	"strings"
)

// TextLiteral is a text as a CEL literal. Users choose keys and values of labels, so all characters
// that are not known to be harmless are escaped: no text can end the literal.
func TextLiteral(text string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_./: =", r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// ListLiteral is a list of texts as a CEL literal.
func ListLiteral(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = TextLiteral(text)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// AllOf is true if all expressions are. Empty ones are left out; expressions of several parts are in parentheses.
func AllOf(parts ...string) string { return joinParts(" && ", parts) }

// AnyOf is true if one of the expressions is. It treats them like AllOf.
func AnyOf(parts ...string) string { return joinParts(" || ", parts) }

func joinParts(by string, parts []string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" })
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, by) + ")"
}
