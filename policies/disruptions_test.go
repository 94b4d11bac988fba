// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unasked are the rows of README.md on what is deleted without a decision.
const unasked = "unasked: "

// TestEachDisruptionIsAskedAbout holds that each call of product code that deletes or evicts an object, resizes a pod or
// writes a child's template is in the table: with the point that is asked first, or with the row of README.md that says
// that no policy decides it.
func TestEachDisruptionIsAskedAbout(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, root := range []string{"../controllers", "../nodeagent"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.HasPrefix(path, "../controllers/simulation/") || strings.HasPrefix(path, "../controllers/api/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && disrupts(f) {
					found[strings.TrimPrefix(path, "../")+" "+f.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for site := range found {
		if disruptions[site] == "" {
			t.Errorf("%s deletes, evicts, resizes or writes a template: ask a point about it, or add it to \"What no policy can do\" of README.md", site)
		}
	}
	for site, by := range disruptions {
		if !found[site] {
			t.Errorf("%s is in the table and disrupts nothing any more", site)
		}
		if row, ok := strings.CutPrefix(by, unasked); ok && !strings.Contains(string(readme), "| "+row+" |") {
			t.Errorf("README.md has no row %q, for %s", row, site)
		}
	}
	if len(found) < 20 {
		t.Errorf("only %d calls are found", len(found))
	}
}

// disrupts says whether a function has a call of a client that disrupts.
func disrupts(f *ast.FuncDecl) (yes bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		called, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		context, _ := call.Args[0].(*ast.Ident)
		text, _ := call.Args[0].(*ast.BasicLit)
		switch called.Sel.Name {
		case "Delete", "DeleteAllOf", "DeleteCollection", "Evict", "EvictV1":
			yes = yes || context != nil && context.Name == "ctx"
		case "SubResource":
			yes = yes || text != nil && slices.Contains([]string{`"eviction"`, `"resize"`}, text.Value)
		case "Update": // whole objects: children and their templates
			yes = yes || context != nil && context.Name == "ctx" && !isStatus(called.X)
		}
		return true
	})
	return yes
}

func isStatus(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	called, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (called.Sel.Name == "Status" || called.Sel.Name == "SubResource")
}
