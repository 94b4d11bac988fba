// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of invariants in the guide names a test for each, and there are such tests.
func TestEveryInvariantHasItsTest(t *testing.T) {
	tests := testsOfTheRepository(t)
	for _, row := range readInvariants(t) {
		named := namedTest.FindAllStringSubmatch(row[2], -1)
		if len(named) == 0 {
			t.Errorf("no test is named for: %s", row[0])
		}
		for _, test := range named {
			if !tests[test[1]] {
				t.Errorf("there is no %s", test[1])
			}
		}
	}
}

// It says where each is kept to: a package, and what that declares, or a file of each kind.
func TestEveryInvariantIsWhereTheGuideSays(t *testing.T) {
	code := regexp.MustCompile("`([^`]+)`")
	for _, row := range readInvariants(t) {
		where := code.FindAllStringSubmatch(row[1], -1)
		if len(where) == 0 {
			t.Errorf("no package is named for: %s", row[0])
			continue
		}
		pkg := where[0][1]
		folder := filepath.Join("..", "controllers", pkg)
		if strings.HasPrefix(pkg, "engine") {
			folder = filepath.Join("..", pkg)
		}
		declared := listDeclarations(t, folder)
		if len(declared) == 0 {
			t.Errorf("there is no package %s", pkg)
		}
		for _, name := range where[1:] {
			if strings.HasSuffix(name[1], ".go") {
				for _, kind := range []string{"cloneset", "daemonset", "statefulset"} {
					if _, err := os.Stat(filepath.Join("..", "controllers", kind, name[1])); err != nil {
						t.Errorf("%s has no %s", kind, name[1])
					}
				}
			} else if !declared[name[1]] {
				t.Errorf("package %s declares no %s", pkg, name[1])
			}
		}
	}
}

// readInvariants are the cells of the rows of the table: the invariant, where it is, and its tests.
func readInvariants(t *testing.T) (rows [][]string) {
	t.Helper()
	guide, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(guide), "| invariant | where | test |")
	if !ok {
		t.Fatal("the guide has no table of invariants")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("a row has %d cells: %s", len(cells), line)
		}
		rows = append(rows, cells)
	}
	if len(rows) < 8 {
		t.Errorf("the table has %d rows", len(rows))
	}
	return rows
}

// listDeclarations are the functions, methods and types that the sources of a folder declare.
func listDeclarations(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				out[d.Name.Name] = true
			case *ast.GenDecl:
				for _, one := range d.Specs {
					if named, ok := one.(*ast.TypeSpec); ok {
						out[named.Name.Name] = true
					}
				}
			}
		}
	}
	return out
}

var namedTest = regexp.MustCompile("`(Test[A-Za-z]+)`")

// Tests that a page names are there, by that name.
func TestPagesOfTheSpecificationNameTestsThatThereAre(t *testing.T) {
	pages, err := filepath.Glob("spec/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, named := testsOfTheRepository(t), 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedTest.FindAllStringSubmatch(string(text), -1) {
			named++
			if !tests[m[1]] {
				t.Errorf("%s names %s, which there is not", page, m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no page names a test")
	}
}

func testsOfTheRepository(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	out := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
