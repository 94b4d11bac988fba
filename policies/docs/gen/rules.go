// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// builtin is the policy that answers where no other bundle does.
type builtin struct {
	compiler *ast.Compiler
	says     *ast.AnnotationSet
}

func compileBuiltin(files fs.FS) (*builtin, error) {
	modules := map[string]*ast.Module{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".rego" {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		modules[name], err = module.Parse(name, string(text))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the built-in policies: %w", err)
	}
	c, err := module.Compile(modules)
	if err != nil {
		return nil, err
	}
	// The compiler works on copies, so annotations are found by its rules alone.
	says, errs := ast.BuildAnnotationSet(slices.Collect(maps.Values(c.Modules)))
	if len(errs) > 0 {
		return nil, fmt.Errorf("reading metadata: %w", errs)
	}
	return &builtin{compiler: c, says: says}, nil
}

// entrypointRules are those that an entrypoint depends on, by file and row.
func (b *builtin) entrypointRules(point decision.Name) []*ast.Rule {
	seen := map[*ast.Rule]bool{}
	var visit func(r *ast.Rule)
	visit = func(r *ast.Rule) {
		if seen[r] {
			return
		}
		seen[r] = true
		for dep := range b.compiler.Graph.Dependencies(r) {
			if next, ok := dep.(*ast.Rule); ok {
				visit(next)
			}
		}
	}
	for _, r := range b.compiler.GetRulesExact(entrypointRef(point)) {
		visit(r)
	}
	return slices.SortedFunc(maps.Keys(seen), func(x, y *ast.Rule) int {
		a, b := x.Loc(), y.Loc()
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Row, b.Row))
	})
}

func entrypointRef(point decision.Name) ast.Ref {
	domain, name, _ := strings.Cut(string(point), "/")
	return ast.DefaultRootRef.Append(ast.StringTerm(domain)).Append(ast.StringTerm(name))
}

// ruleTable lists the rules of a point that have an id.
func (b *builtin) ruleTable(point decision.Name) string {
	var out strings.Builder
	listed := map[any]bool{}
	for _, r := range b.entrypointRules(point) {
		about := slices.Clone(b.says.GetRuleScope(r))
		if a := b.says.GetDocumentScope(r.Ref().GroundPrefix()); a != nil && r.Default {
			about = append(about, a)
		}
		for _, a := range about {
			id, ok := a.Labels[module.LabelID]
			if !ok || listed[id] {
				continue
			}
			listed[id] = true
			at := r.Loc()
			fmt.Fprintf(&out, "| `%v` | %s. %s | [%s:%d](../%s#L%d) |\n", id, a.Title, tableCell(a.Description), at.File, at.Row, at.File, at.Row)
		}
	}
	return out.String()
}

// pointExtensions are the extensions that take part in the decisions of a point, which are
// those that its rules refer to.
func (b *builtin) pointExtensions(point decision.Name) (out []bundle.Extension) {
	read := map[string]bool{}
	for _, r := range b.entrypointRules(point) {
		ast.WalkRefs(r, func(ref ast.Ref) bool {
			if len(ref) > 4 && ref.HasPrefix(ast.DefaultRootRef.Append(ast.StringTerm("extend")).Append(ast.StringTerm(point.Domain()))) {
				if name, ok := ref[4].Value.(ast.String); ok {
					read[string(name)] = true
				}
			}
			return false
		})
	}
	for _, x := range bundle.AllExtensions() {
		if x.Domain == point.Domain() && read[x.Rule] {
			out = append(out, x)
		}
	}
	return out
}
