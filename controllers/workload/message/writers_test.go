// SPDX-License-Identifier: Apache-2.0

package message_test

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

// boundedElsewhere are the functions with writers of messages that this test cannot see to be bounded, and what bounds them.
func boundedElsewhere() map[string]string {
	const (
		answer = "it is an answer to one caller"
		copied = "it is copied from one that was bounded when it was written"
		list   = "it is a list that controllers read, with an entry for each of them or for each SidecarSet"
	)
	return map[string]string{
		"controllers/explain/serve/access.go writeFailure":          answer,
		"controllers/explain/whatif/compare.go addReasons":          answer,
		"controllers/gatedkinds/admit.go RefuseCreation":            answer,
		"controllers/imagepulljob/paced.go timeToWrite":             copied,
		"controllers/kinds/view.go ViewSidecarSet":                  copied,
		"controllers/kinds/view.go ViewUnitedDeployment":            copied,
		"controllers/protection/report.go RefuseRequest":            answer,
		"controllers/sidecarset/status.go writeVerdict":             list,
		"controllers/workload/lifecycle/write.go SetKey":            list,
		"controllers/workload/condition/condition.go FindCondition": copied,
		"controllers/workloadspread/conditions.go ExplainPlacement": answer,
	}
}

// Each message of a condition, and of a part of a status, is a constant or goes through Shorten, List or one of their like, so that
// no number of pods and no error of another program makes a status too long for the API server. A condition.Condition is bounded where
// condition.SetCondition writes it.
func TestAllWritersOfMessagesBoundThem(t *testing.T) {
	excused, used, root, found := boundedElsewhere(), map[string]bool{}, filepath.Join("..", "..", ".."), 0
	check := func(path string) error {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			key, bounded := filepath.ToSlash(name)+" "+f.Name.Name, boundedNames(f)
			for _, value := range messagesOf(f) {
				found++
				if id, ok := value.(*ast.Ident); isBounded(value) || ok && bounded[id.Name] {
					continue
				}
				if _, ok := excused[key]; !ok {
					t.Errorf("%s, line %d: a message is not bounded by message.Shorten or message.List", key, set.Position(value.Pos()).Line)
				}
				used[key] = true
			}
		}
		return nil
	}
	for _, top := range []string{"controllers", "nodeagent"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !writesStatus(filepath.ToSlash(path)) {
				return err
			}
			return check(path)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for key := range excused {
		if !used[key] {
			t.Errorf("%s writes no message that has to be excused", key)
		}
	}
	if found < 35 {
		t.Errorf("only %d messages were found", found)
	}
}

// writesStatus reports whether a file may write to a status: neither the API types, nor admission, nor the
// command line does, nor what explains decisions to who asks.
func writesStatus(path string) bool {
	if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
		return false
	}
	return !slices.ContainsFunc([]string{"/controllers/api/", "/controllers/cmd/", "/controllers/webhook/", "/controllers/simulation/", "/explain.go", "/evidence.go"}, func(part string) bool {
		return strings.Contains(path, part)
	})
}

// messagesOf are the values that a function writes to fields Message of conditions and of other parts of statuses.
func messagesOf(f *ast.FuncDecl) (out []ast.Expr) {
	unwritten := unwrittenConditions(f)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if !ofStatus(n.Type) {
				return true
			}
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Message" {
						out = append(out, pair.Value)
					}
				}
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				s, ok := left.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "Message" || i >= len(n.Rhs) {
					continue
				}
				if of, ok := s.X.(*ast.Ident); !ok || !unwritten[of.Name] {
					out = append(out, n.Rhs[i])
				}
			}
		}
		return true
	})
	return out
}

// unwrittenConditions are the variables of a function that start as a condition.Condition.
func unwrittenConditions(f *ast.FuncDecl) map[string]bool {
	out := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
			for i, right := range a.Rhs {
				id, ok := a.Lhs[i].(*ast.Ident)
				if c, isLiteral := right.(*ast.CompositeLit); ok && isLiteral && isUnwrittenCondition(c.Type) {
					out[id.Name] = true
				}
			}
		}
		return true
	})
	return out
}

// isUnwrittenCondition reports whether a type is condition.Condition.
func isUnwrittenCondition(kind ast.Expr) bool {
	k, ok := kind.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := k.X.(*ast.Ident)
	return ok && p.Name == "condition" && k.Sel.Name == "Condition"
}

// boundedNames are the variables of a function that a bounded value is assigned to last.
func boundedNames(f *ast.FuncDecl) map[string]bool {
	bounded := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for i, left := range a.Lhs {
				if id, ok := left.(*ast.Ident); ok {
					bounded[id.Name] = i < len(a.Rhs) && isBounded(a.Rhs[i])
				}
			}
		}
		return true
	})
	return bounded
}

// ofStatus reports whether a type is that of a condition or of a part of a status.
func ofStatus(kind ast.Expr) bool {
	if isUnwrittenCondition(kind) {
		return false
	}
	name := ""
	switch k := kind.(type) {
	case *ast.Ident:
		name = k.Name
	case *ast.SelectorExpr:
		name = k.Sel.Name
	}
	return strings.HasSuffix(name, "Condition") || strings.HasSuffix(name, "Status") || strings.HasSuffix(name, "State")
}

// isBounded reports whether an expression is a constant, or a call of what bounds a text.
func isBounded(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return strings.HasSuffix(v.Name, "Message")
	case *ast.SelectorExpr: // a constant of the API
		p, ok := v.X.(*ast.Ident)
		return ok && slices.Contains([]string{"kruise", "policy"}, p.Name)
	case *ast.CallExpr:
		name := ""
		switch f := v.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		return slices.Contains([]string{"Shorten", "ListNames", "OneLine", "Truncate", "ErrorText"}, name)
	}
	return false
}
