// SPDX-License-Identifier: Apache-2.0

package support

import (
	"regexp"
	"strings"

	"github.com/regatta-sh/regatta/engine/record/mask"
)

// Patterns of lines that begin a value of several lines.
var (
	// keyLine matches a line that begins with a key of YAML or JSON.
	keyLine = regexp.MustCompile(`^(\s*(?:- +)*)(["']?)([A-Za-z0-9_.-]+)["']?\s*:(?:\s|$)`)
	// keyEnd matches a line that ends with a key, after the prefix of a log line.
	keyEnd = regexp.MustCompile(`(["']?)([A-Za-z0-9_.-]+)["']?\s*[:=]\s*(?:[|>][0-9+-]*|[\[({"'])?\s*$`)
	// flagLine matches a line that has only a flag, whose value is in the next line.
	flagLine = regexp.MustCompile(`^\s*(?:- +)?\\*["']?(--?[A-Za-z][A-Za-z0-9_.-]*)\\*["']?\s*,?\s*$`)
	// nameLine matches a line with the name of an environment variable, whose value is in the next line.
	nameLine  = regexp.MustCompile(`(?i)^\s*(?:- +)?["']?name["']?\s*:\s*["']?([A-Za-z0-9_.-]+)["']?,?\s*$`)
	valueLine = regexp.MustCompile(`(?i)^(\s*(?:- +)?["']?value["']?\s*:\s*)(\S.*)$`)
)

// hideBlocks masks lines that are the value of an earlier line: the lines below a key that has the name of a secret or the contents of a
// Secret, and the value of a flag or a variable.
func (s *scrubber) hideBlocks(text string) string {
	lines := strings.Split(text, "\n")
	below, flag, named := -1, false, false // below is the indentation of the key that the lines belong to
	for n, line := range lines {
		body := strings.TrimLeft(line, " \t")
		indent := len(line) - len(body)
		value := valueLine.FindStringSubmatch(line)
		switch {
		case strings.TrimSpace(line) == "":
			continue
		case below >= 0 && (indent > below || indent == below && strings.HasPrefix(body, "- ")), flag && !strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(body, "- "), "\"' "), "--"):
			lines[n] = line[:indent] + s.maskWhole(body)
			flag = false
			continue
		case named && value != nil:
			lines[n] = value[1] + s.maskWhole(value[2])
			below, flag, named = indent, false, false
			continue
		}
		below, flag = findBlockIndent(line), isSecretLine(flagLine, line)
		named = isSecretLine(nameLine, line)
	}
	return strings.Join(lines, "\n")
}

// maskWhole hides a text everywhere in the archive.
func (s *scrubber) maskWhole(text string) string {
	if strings.Contains(text, mask.Text) {
		return text
	}
	plain := strings.Trim(strings.TrimPrefix(text, "- "), "\"',\\ \r")
	if !strings.ContainsAny(plain, "{}[]") || len(plain) > distinctive {
		s.addHidden(plain)
	}
	return mask.Text
}

// findBlockIndent returns the indentation of the key of a line if the lines below it that are indented further are a secret; -1 if
// not.
func findBlockIndent(line string) int {
	if m := keyLine.FindStringSubmatch(line); m != nil && isSecretBlock(m[3]) {
		return len(m[1])
	}
	if m := keyEnd.FindStringSubmatch(line); m != nil && isSecretBlock(m[2]) {
		return len(line) - len(strings.TrimLeft(line, " \t"))
	}
	return -1
}

// isSecretBlock reports whether the lines below a key are hidden. The key data is that of a Secret or a
// ConfigMap.
func isSecretBlock(key string) bool {
	return mask.IsSecretName(key) || key == "data" || key == "stringData" || key == "binaryData"
}

// isSecretLine reports whether a line matches a pattern, and its name is like that of a secret.
func isSecretLine(pattern *regexp.Regexp, line string) bool {
	m := pattern.FindStringSubmatch(line)
	return m != nil && mask.IsSecretName(m[1])
}
