// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeNames are the methods of clients that write to the API server, and those that stop containers of a runtime.
var writeNames = []string{
	"Create", "Update", "UpdateStatus", "Patch", "Apply", "Delete", "DeleteAllOf", "DeleteCollection", "Evict", "EvictV1",
	"Stop", "StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox",
}

// parsedFile is a file of product code, named by its path in the repository.
type parsedFile struct {
	path string
	*ast.File
}

// parseProduct parses the product code below some directories of the repository. What represents a cluster in tests, and what is
// generated, is left out.
func parseProduct(t *testing.T, roots ...string) (files []parsedFile) {
	t.Helper()
	for _, root := range roots {
		err := filepath.WalkDir("../"+root, func(path string, d fs.DirEntry, err error) error {
			path = strings.TrimPrefix(filepath.ToSlash(path), "../")
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.HasPrefix(path, "controllers/simulation/") || strings.HasPrefix(d.Name(), "zz_") || strings.HasPrefix(path, "nodeagent/cri/critest/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), "../"+path, nil, parser.SkipObjectResolution)
			files = append(files, parsedFile{path, file})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// writesIn are the functions of files that write, each as its file and its name.
func writesIn(files []parsedFile) map[string]bool {
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasPrefix(file.path, "controllers/api/") { // types alone
			continue
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && writes(f) {
				found[file.path+" "+f.Name.Name] = true
			}
		}
	}
	return found
}

// writes reports whether a function calls a method that writes, or passes one on. A dry run writes nothing.
func writes(f *ast.FuncDecl) (yes bool) {
	contexts, called := contextsOf(f), map[ast.Expr]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called[n.Fun] = true
			method, ok := n.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains(writeNames, method.Sel.Name) && len(n.Args) > 1 && isContext(n.Args[0], contexts) && !slices.ContainsFunc(n.Args, isDryRun) {
				yes = true
			}
		case *ast.SelectorExpr: // a method that another function calls
			yes = yes || !called[n] && slices.Contains(writeNames, n.Sel.Name) && isClient(n.X)
		}
		return true
	})
	return yes
}

// contextsOf are the names by which a function has contexts: its parameters, and what it makes by package context.
func contextsOf(f *ast.FuncDecl) map[string]bool {
	names := map[string]bool{"ctx": true}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			for _, p := range n.Params.List {
				if typ, ok := p.Type.(*ast.SelectorExpr); ok && typ.Sel.Name == "Context" {
					for _, name := range p.Names {
						names[name.Name] = true
					}
				}
			}
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				if name, ok := n.Lhs[i].(*ast.Ident); ok && isContext(value, nil) {
					names[name.Name] = true
				}
			}
		}
		return true
	})
	return names
}

// isContext reports whether an expression is a context: one of some names, a field or a method of that name, or what package
// context makes.
func isContext(x ast.Expr, names map[string]bool) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return names[x.Name]
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "ctx") || strings.EqualFold(x.Sel.Name, "context")
	case *ast.CallExpr:
		method, ok := x.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		pkg, ok := method.X.(*ast.Ident)
		return ok && pkg.Name == "context" || method.Sel.Name == "Context"
	}
	return false
}

// isClient reports whether an expression is called a client. The package of that name has a type Patch.
func isClient(x ast.Expr) bool {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		if name = x.Name; name == "client" {
			return false
		}
	case *ast.SelectorExpr:
		name = x.Sel.Name
	case *ast.CallExpr:
		if method, ok := x.Fun.(*ast.SelectorExpr); ok {
			name = method.Sel.Name
		}
	}
	return slices.Contains([]string{"client", "writer", "status", "live", "subresource", "stopper", "runtime", "c"}, strings.ToLower(name))
}

func isDryRun(x ast.Expr) bool {
	option, ok := x.(*ast.SelectorExpr)
	return ok && option.Sel.Name == "DryRunAll"
}
