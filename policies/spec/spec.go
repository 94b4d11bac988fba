// SPDX-License-Identifier: Apache-2.0

// Package spec has the rules that code, policies and pages cite by an ID.
package spec

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Files are the rules: a Markdown file for each domain, a heading for each rule.
//
//go:embed *.md
var Files embed.FS

// Rule is a heading of one of the files.
type Rule struct {
	ID, Title, File string
}

var (
	heading = regexp.MustCompile(`^## ([A-Z]{1,5}-[0-9]{2}) (\S.*)$`)
	looks   = regexp.MustCompile(`^#+ *[A-Za-z]{1,5}-[0-9]`)
	cited   = regexp.MustCompile(`\b[A-Z]{1,5}-[0-9]{2}\b`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Link is where the rule is, from this folder.
func (r Rule) Link() string { return r.File + "#" + MarkdownAnchor(r.ID+" "+r.Title) }

// MarkdownAnchor is the one that Markdown gives to a heading.
func MarkdownAnchor(heading string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// ReadRules reads all rules, by ID. A rule that has two headings is an error.
func ReadRules(files fs.FS) (map[string]Rule, error) {
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		return nil, fmt.Errorf("finding the rules: %w", err)
	}
	rules := map[string]Rule{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the rules: %w", err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			m := heading.FindStringSubmatch(line)
			if m == nil {
				if looks.MatchString(line) {
					return nil, fmt.Errorf("%s:%d: %q is not of the form \"## CS-07 Title\"", name, i+1, line)
				}
				continue
			}
			if other, ok := rules[m[1]]; ok {
				return nil, fmt.Errorf("%s:%d: rule %s is in %s already", name, i+1, m[1], other.File)
			}
			rules[m[1]] = Rule{ID: m[1], Title: m[2], File: path.Base(name)}
		}
	}
	return rules, nil
}

// CitedIDs are the IDs in a text, in order.
func CitedIDs(text string) []string { return cited.FindAllString(text, -1) }

// LinkRules makes a link of each ID in a text; folder is the path to the rules from
// where the text will be. An ID without a rule is an error.
func LinkRules(text, folder string, rules map[string]Rule) (string, error) {
	var missing error
	linked := cited.ReplaceAllStringFunc(text, func(id string) string {
		r, ok := rules[id]
		if !ok {
			missing = fmt.Errorf("rule %s is not in policies/spec", id)
			return id
		}
		return "[" + id + "](" + path.Join(folder, r.Link()) + ")"
	})
	return linked, missing
}
