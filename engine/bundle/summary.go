// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"maps"
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/module"
)

// Summary describes the contents of a bundle, for users and scripts.
type Summary struct {
	Name string `json:"name"`
	// Revision is the one in the manifest; Content is the hash of the content, as in the status of a
	// bundle.
	Revision string           `json:"revision,omitempty"`
	Content  string           `json:"content"`
	Sequence *int64           `json:"sequence,omitempty"`
	Roots    []string         `json:"roots,omitempty"`
	Packages []PackageSummary `json:"packages"`
	// Tests are the files with tests.
	Tests     []string      `json:"tests,omitempty"`
	Files     []FileSummary `json:"files"`
	Size      int           `json:"size"`
	Signature *Signature    `json:"signature,omitempty"`
}

// PackageSummary is a package and how it takes part in decisions.
type PackageSummary struct {
	Name string `json:"name"`
	// Extends are rules that add to the decisions of a domain; Overrides are points that the package
	// answers in place of the built-in policies.
	Extends   []string `json:"extends,omitempty"`
	Overrides []string `json:"overrides,omitempty"`
	// PlatformOnly is true if a bundle of a namespace may not have the package.
	PlatformOnly bool `json:"platformOnly,omitempty"`
}

// FileSummary is a file and its size in bytes.
type FileSummary struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// SummarizeContent returns a summary of the bundle.
func (b *Bundle) SummarizeContent() Summary {
	s := Summary{
		Name: b.Name, Revision: b.Manifest.Revision, Content: ShortRevision(b.Revision), Signature: b.Signature,
		Packages: []PackageSummary{}, Files: []FileSummary{}, Tests: slices.Sorted(maps.Keys(b.Tests)),
	}
	if n, ok := b.ManifestSequence(); ok {
		s.Sequence = &n
	}
	if b.Manifest.Roots != nil {
		s.Roots = *b.Manifest.Roots
	}
	for _, p := range slices.Sorted(maps.Keys(b.Files)) {
		s.Files = append(s.Files, FileSummary{p, len(b.Files[p])})
		s.Size += len(b.Files[p])
	}
	s.Packages = append(s.Packages, b.summarizePackages()...)
	return s
}

func (b *Bundle) summarizePackages() (out []PackageSummary) {
	rules := map[string][]string{}
	for _, m := range b.Modules {
		path := module.PackagePath(m)
		rules[path] = append(rules[path], "") // there, though it may have no rules
		for _, r := range m.Rules {
			rules[path] = append(rules[path], ruleName(r))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(rules)) {
		p := PackageSummary{Name: path}
		kind, rest, _ := strings.Cut(path, ".")
		domain, _, _ := strings.Cut(rest, ".")
		slices.Sort(rules[path])
		for _, name := range slices.Compact(rules[path]) {
			x := slices.IndexFunc(AllExtensions(), func(x Extension) bool { return x.Domain == domain && x.Rule == name })
			switch {
			case kind == "extend" && x >= 0:
				p.Extends = append(p.Extends, name)
				p.PlatformOnly = p.PlatformOnly || !AllExtensions()[x].Stricter
			case kind == "override" && slices.ContainsFunc(catalog.All(), func(p decision.UntypedPoint) bool { return string(p.Name) == domain+"/"+name }):
				p.Overrides = append(p.Overrides, domain+"/"+name)
				p.PlatformOnly = true
			}
		}
		out = append(out, p)
	}
	return out
}
