// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/policies/spec"
	"github.com/regatta-sh/regatta/test/rules"
)

func pages(t *testing.T) map[string]string {
	t.Helper()
	t.Chdir("../../..") // comments are found by paths below the root of the module
	out, err := generatePages(".")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestThePagesAreWhatTheContractSays(t *testing.T) {
	all := pages(t)
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("policies", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is stale, run make generate: want (-), got (+):\n%s", name, diff)
		}
	}
	there, err := filepath.Glob("policies/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range there {
		if _, ok := all[filepath.Base(path)]; !ok {
			t.Errorf("%s is of no point that there is: remove it", path)
		}
	}
}

func TestEveryPointHasAWholePage(t *testing.T) {
	all := pages(t)
	for _, p := range catalog.All() {
		page := all[pageFile(p.Name)]
		for _, heading := range []string{"## Input", "### An example", "## Answer", "## Default", "## Limits and fallback", "## Extend it", "## Replace it"} {
			if strings.Count(page, heading+"\n") != 1 {
				t.Errorf("the page of %s has no %s", p.Name, heading)
			}
		}
		if strings.Contains(page, "|  |\n") {
			t.Errorf("the page of %s has an empty meaning", p.Name)
		}
		if !strings.Contains(all["README.md"], "]("+pageFile(p.Name)+")") {
			t.Errorf("the index does not name %s", p.Name)
		}
	}
}

// TestLinksOfThePagesLead follows them to the rules of the built-in policies and
// of the specification too.
func TestLinksOfThePagesLead(t *testing.T) {
	for name, page := range pages(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)(?:#(?:L(\d+)|([a-z][^)]*)))?\)`).FindAllStringSubmatch(page, -1) {
			text, err := os.ReadFile(filepath.Join("policies", "docs", link[1]))
			if err != nil {
				t.Errorf("%s leads to nothing: %v", name, err)
				continue
			}
			var row int
			if _, err := fmt.Sscan(link[2], &row); err == nil && strings.HasPrefix(strings.Split(string(text), "\n")[row-1], "#") {
				t.Errorf("%s leads to %s#L%d, which is a comment and no rule", name, link[1], row)
			}
			if link[3] != "" && !slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
				return spec.MarkdownAnchor(strings.TrimLeft(line, "# ")) == link[3]
			}) {
				t.Errorf("%s leads to %s, which has no heading %s", name, link[1], link[3])
			}
		}
	}
}

// TestPoliciesOfThePagesPassTheGate lets each in by itself, and asks the example.
func TestPoliciesOfThePagesPassTheGate(t *testing.T) {
	all := pages(t)
	builtin, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	e := rules.Engine(t, "")
	shown, err := decideExamples(e, os.DirFS("policies"))
	if err != nil {
		t.Fatal(err)
	}
	doors := gate.New(builtin)
	for _, p := range catalog.All() {
		blocks := regexp.MustCompile("(?s)```rego\n(.*?)```").FindAllStringSubmatch(all[pageFile(p.Name)], -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no policy", p.Name)
		}
		for i, block := range blocks {
			t.Run(fmt.Sprintf("%s %d", p.Name, i), func(t *testing.T) {
				b, err := bundle.FromFiles("page", map[string]string{"page.rego": block[1]})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := doors.AdmitBundle(t.Context(), b, nil, nil); err != nil {
					t.Fatal(err)
				}
				s, err := e.CompileBundles(t.Context(), bundle.Set{b})
				if err != nil {
					t.Fatal(err)
				}
				p.Budget *= 100 // machines that run tests are slow
				_, r := engine.DecideOn(t.Context(), e, s, p, decision.Subject{Kind: "Case", Name: "page"}, shown[p.Name].Record.Input)
				if r.Outcome != decision.Decided {
					t.Errorf("the outcome is %s: %s", r.Outcome, r.Error)
				}
			})
		}
	}
}

// Each policy that a page shows is of a point, in the form of opa fmt.
func TestOverridesAreFormattedAndOfAPoint(t *testing.T) {
	names := map[string]bool{}
	for _, p := range catalog.All() {
		names["examples/"+string(p.Name)+".rego"] = true
	}
	err := fs.WalkDir(overrides, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !names[path] {
			t.Errorf("%s is of no point", path)
		}
		text, err := overrides.ReadFile(path)
		if err != nil {
			return err
		}
		formatted, err := format.SourceWithOpts(path, text, format.Opts{RegoVersion: ast.RegoV1, ParserOptions: &ast.ParserOptions{RegoVersion: ast.RegoV1}})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(string(formatted), string(text)); diff != "" {
			t.Errorf("%s: opa fmt (-) and the file (+):\n%s", path, diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAMapAndAListAreToldInWords(t *testing.T) {
	t.Chdir("../../..")
	type pod struct {
		Labels map[string][]int `json:"labels,omitempty"`
	}
	got, err := fieldTable(reflect.TypeFor[struct {
		Pods []pod `json:"pods"`
	}]())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| `pods` | list of object | yes |", "| `pods[].labels` | map of list of integer | no |"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
}

func TestRulesThatAPageCitesAreLinksButInCode(t *testing.T) {
	rules := map[string]spec.Rule{"X-01": {ID: "X-01", Title: "One", File: "x.md"}}
	for page, want := range map[string]string{
		"It stays (X-01, n).\n":                         "It stays ([X-01](../spec/x.md#x-01-one), n).\n",
		"a\n```rego\n# X-01\n```\nX-01\n```\nX-01\n```": "a\n```rego\n# X-01\n```\n[X-01](../spec/x.md#x-01-one)\n```\nX-01\n```",
		"A pod stays.":                                  "A pod stays.",
	} {
		if got, err := linkRules(page, rules); err != nil || got != want {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
	}
	if _, err := linkRules("X-02", rules); err == nil {
		t.Error("a rule that is not there is linked")
	}
}
