// SPDX-License-Identifier: Apache-2.0

// Package scaffold has the files that a new policy starts from: a rule that works, its metadata, a
// test, a case and a README.
package scaffold

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

//go:embed files
var files embed.FS

// Kind is a rule of a domain that a policy can start from.
type Kind struct{ Domain, Rule string }

// AllKinds lists all kinds, the usual one of each domain first.
func AllKinds() []Kind {
	return []Kind{
		{"rollout", "hold"}, {"rollout", "rank"}, {"protection", "deny"}, {"protection", "guard"}, {"protection", "exempt"},
		{"injection", "skip"}, {"injection", "add"}, {"node", "hold"}, {"node", "deny"}, {"node", "rank"},
		{"placement", "hold"}, {"placement", "deny"}, {"placement", "rank"},
	}
}

// FindKind finds a kind by a domain and a rule, of which either may be empty.
func FindKind(domain, rule string) (Kind, error) {
	var have []string
	for _, k := range AllKinds() {
		if (domain == "" || domain == k.Domain) && (rule == "" || rule == k.Rule) {
			return k, nil
		}
		have = append(have, k.Domain+" "+k.Rule)
	}
	return Kind{}, fmt.Errorf("there is nothing to start %s from; there is %s", strings.TrimSpace(domain+" "+rule), strings.Join(have, ", "))
}

// New makes the files of a policy, by their paths in its folder.
func New(name string, k Kind) (map[string]string, error) {
	if !slices.Contains(AllKinds(), k) {
		return nil, fmt.Errorf("there is nothing to start %s %s from", k.Domain, k.Rule)
	}
	// A name is that of an object in the cluster, and part of a package.
	if len(name) > 63 || !regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`).MatchString(name) {
		return nil, fmt.Errorf("the name %q is none: small letters, digits and dashes, such as change-freeze", name)
	}
	last := strings.ReplaceAll(name, "-", "_")
	if isReservedWord(last) {
		return nil, fmt.Errorf("the name %q is a word of Rego; take another, such as %s-policy", name, name)
	}
	words := strings.Split(name, "-")
	reason := ""
	for _, w := range words {
		if w != "" {
			reason += strings.ToUpper(w[:1]) + w[1:]
		}
	}
	// Only names are replaced, so package text/template is not used. It would make the command line a quarter larger: it calls methods by
	// their names, so the linker keeps all methods.
	facts := strings.NewReplacer(
		"<<.Name>>", name, "<<.Title>>", strings.ToUpper(name[:1])+strings.Join(words, " ")[1:],
		"<<.Package>>", "extend."+k.Domain+"."+last, "<<.Last>>", last, "<<.Reason>>", reason,
	)
	folder := k.Rule
	if k.Domain == "node" || k.Domain == "placement" { // their rules have names of others
		folder = k.Domain + "-" + k.Rule
	}
	out := map[string]string{}
	for file, from := range map[string]string{
		name + ".rego":            folder + "/policy.rego.tmpl",
		name + "_test.rego":       folder + "/policy_test.rego.tmpl",
		"cases/" + name + ".yaml": folder + "/cases.yaml.tmpl",
		"README.md":               "README.md.tmpl",
	} {
		text, err := files.ReadFile("files/" + from)
		if err != nil {
			return nil, fmt.Errorf("reading the template %s: %w", from, err)
		}
		out[file] = facts.Replace(string(text))
		if strings.Contains(out[file], "<<") {
			return nil, fmt.Errorf("the template %s has a field that is not filled in", from)
		}
	}
	return out, nil
}

// isReservedWord reports whether a word cannot be the last part of a package that tests import.
func isReservedWord(word string) bool {
	_, err := ast.ParseModuleWithOpts("", "package a\nimport data.a."+word+"\nb := "+word, ast.ParserOptions{RegoVersion: ast.RegoV1})
	return err != nil || word == "input" || word == "data"
}
