// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// literal is a text as CEL reads it. Users choose keys and values of labels, so
// all but what is harmless is escaped: no text ends the literal.
func literal(text string) string {
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

func literals(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = literal(text)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// all and anyOf join expressions, each of which is in brackets if it has several
// parts.
func all(parts ...string) string { return joined(" && ", parts) }

func anyOf(parts ...string) string { return joined(" || ", parts) }

func joined(by string, parts []string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" })
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, by) + ")"
}

// labelled is true for objects, as they are stored, that have labels.
func labelled(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("oldObject.metadata.?labels[%s].orValue('') == %s", literal(key), literal(labels[key])))
		if labels[key] == "" { // a label that is empty, not one that is not there
			parts = append(parts, fmt.Sprintf("oldObject.metadata.?labels[%s].hasValue()", literal(key)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return all(parts...)
}

// alive is true for objects that are not on their way out: their protection is
// over, and who ends them must not be kept from it.
const alive = "!has(oldObject.metadata.deletionTimestamp)"

const (
	subresource = "request.?subResource.orValue('')"
	namespace   = "request.?namespace.orValue('')"
)
