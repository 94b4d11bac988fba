// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of invariants in the guide names a test for each, and there are such tests.
func TestEveryInvariantHasItsTest(t *testing.T) {
	guide, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(guide), "| invariant | where | test |")
	if !ok {
		t.Fatal("the guide has no table of invariants")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")[1:]
	if len(rows) < 8 {
		t.Errorf("the table has %d rows", len(rows))
	}
	tests := testsOfTheRepository(t)
	for _, row := range rows {
		named := namedTest.FindAllStringSubmatch(row, -1)
		if len(named) == 0 {
			t.Errorf("no test is named in %s", row)
		}
		for _, test := range named {
			if !tests[test[1]] {
				t.Errorf("there is no %s", test[1])
			}
		}
	}
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
