// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/policies/spec"
)

const made = "<!-- Made by \"make generate\" from the contract, the built-in policies and the cases: edit those. -->\n\n"

// writer has what pages are made of.
type writer struct {
	engine  *engine.Engine
	asked   map[string]string
	builtin *builtin
	shown   map[decision.Name]example
}

// generatePages makes all pages, by the names of their files.
func generatePages(root string) (map[string]string, error) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	w := &writer{engine: e}
	if w.asked, err = readComments(filepath.Join(root, contract)); err != nil {
		return nil, err
	}
	if w.builtin, err = compileBuiltin(policies.Builtin); err != nil {
		return nil, err
	}
	if w.shown, err = decideExamples(e, os.DirFS(filepath.Join(root, "policies"))); err != nil {
		return nil, err
	}
	pages := map[string]string{}
	for _, p := range catalog.All() {
		if pages[pageFile(p.Name)], err = w.renderPage(p); err != nil {
			return nil, fmt.Errorf("describing %s: %w", p.Name, err)
		}
	}
	pages["README.md"] = w.renderIndex()
	rules, err := spec.ReadRules(spec.Files)
	if err != nil {
		return nil, err
	}
	for name, page := range pages {
		if pages[name], err = linkRules(page, rules); err != nil {
			return nil, fmt.Errorf("describing %s: %w", name, err)
		}
	}
	return pages, nil
}

// linkRules makes links of the rules that a page cites, but for its code.
func linkRules(page string, rules map[string]spec.Rule) (string, error) {
	parts := strings.Split(page, "```")
	for i := 0; i < len(parts); i += 2 {
		var err error
		if parts[i], err = spec.LinkRules(parts[i], "../spec", rules); err != nil {
			return "", err
		}
	}
	return strings.Join(parts, "```"), nil
}

func pageFile(point decision.Name) string {
	return strings.ReplaceAll(string(point), "/", "-") + ".md"
}

func (w *writer) renderPage(p decision.UntypedPoint) (string, error) {
	doc := w.asked[pointFunction(p.Name)]
	if doc == "" {
		return "", fmt.Errorf("the function %s of the contract has no comment", pointFunction(p.Name))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n%sIt %s\n\n", p.Name, made, doc)
	for _, section := range []func(*strings.Builder, decision.UntypedPoint) error{w.writeInput, w.writeOutput, w.writeDefaults, w.writeFallback, w.writeExtensions, w.writeOverride} {
		if err := section(&out, p); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(&out, "Schemas for editors: [input](../schemas/%[1]s.input.json), [answer](../schemas/%[1]s.output.json). All points: [README.md](README.md).\n", p.Name)
	return out.String(), nil
}

func (w *writer) writeInput(out *strings.Builder, p decision.UntypedPoint) error {
	table, err := fieldTable(p.In)
	if err != nil {
		return err
	}
	x := w.shown[p.Name]
	question, err := encodeDocument(w.engine, x.Record.Input)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "## Input\n\n`[]` stands for each element of a list, `*` for each key of a map. A field that is not always there is missing where it\nwould be empty: `not input.x` is true then, and a comparison with it is not.\n\n%s\n", table)
	fmt.Fprintf(out, "### An example\n\nThe case \"%s\" of [%s](../%s), as YAML. `regatta policy eval %s -i FILE` asks it.\n\n%s\n", x.Name, x.File, x.File, p.Name, fencedBlock("yaml", question))
	return nil
}

func (w *writer) writeOutput(out *strings.Builder, p decision.UntypedPoint) error {
	table, err := fieldTable(p.Out)
	if err != nil {
		return err
	}
	x := w.shown[p.Name]
	answer, err := encodeDocument(w.engine, x.Record.Output)
	if err != nil {
		return err
	}
	rules := "nothing but its default"
	if len(x.Record.Rules) > 0 {
		rules = "`" + strings.Join(slices.Sorted(slices.Values(x.Record.Rules)), "`, `") + "`"
	}
	fmt.Fprintf(out, "## Answer\n\n%s\nThat of the example; the rules that took part are %s.\n\n%s\n", table, rules, fencedBlock("yaml", answer))
	for _, text := range x.bundles {
		fmt.Fprintf(out, "In this example the following policy is active beside the built-in ones.\n\n%s\n", fencedBlock("", text))
	}
	return nil
}

func (w *writer) writeDefaults(out *strings.Builder, p decision.UntypedPoint) error {
	table := w.builtin.ruleTable(p.Name)
	if table == "" {
		out.WriteString("## Default\n\nNothing is built in.\n\n")
		return nil
	}
	fmt.Fprintf(out, "## Default\n\nWhat is built in answers by these rules. `regatta why`, conditions and records name them.\n\n| rule | meaning | where |\n|---|---|---|\n%s\n", table)
	return nil
}

func (w *writer) writeFallback(out *strings.Builder, p decision.UntypedPoint) error {
	in := w.shown[p.Name].Record.Input
	answer, err := encodeDocument(w.engine, p.Undecided(in, false))
	if err != nil {
		return err
	}
	strict, err := encodeDocument(w.engine, p.Undecided(in, true))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "## Limits and fallback\n\nAn answer may take %s, and may have %d JSON nodes (scalars, lists and objects) and %d KiB of text,\n%d KiB in one piece. Where there is none in time, one that is larger or of another form, the record says so, and this is answered; here to the example.\n\n%s\n", p.Budget, p.MaxResult, p.MaxBytes>>10, decision.MaxText>>10, fencedBlock("yaml", answer))
	if strict != answer {
		fmt.Fprintf(out, "Where rules of users take part, this is answered instead, so that no failure is looser than they are.\n\n%s\n", fencedBlock("yaml", strict))
	}
	return nil
}

func (w *writer) writeExtensions(out *strings.Builder, p decision.UntypedPoint) error {
	reach := w.builtin.pointExtensions(p.Name)
	out.WriteString("## Extend it\n\n")
	if len(reach) == 0 {
		out.WriteString("No rule extends this point.\n\n")
	}
	for _, x := range reach {
		if err := w.writeExtension(out, p.Name, x); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) writeExtension(out *strings.Builder, point decision.Name, x bundle.Extension) error {
	who := "Only bundles of the platform may have it."
	if x.Stricter {
		who = "Anyone may have it."
	}
	fmt.Fprintf(out, "### %s\n\nThe rule `%s` in `package extend.%s.<name>`: %s. %s\n\n", x.Rule, x.Rule, x.Domain, x.Meaning, who)
	switch {
	case x.Answer == nil:
	case x.Answer.Kind() == reflect.Struct:
		table, err := fieldTable(x.Answer)
		if err != nil {
			return err
		}
		if x.Set {
			out.WriteString("It is a set; each element has\n\n")
		}
		out.WriteString(table + "\n")
	case x.Answer.Kind() == reflect.Map:
		fmt.Fprintf(out, "It is an object of numbers, by the names of %s.\n\n", rankedPlaces(point))
	}
	text, err := extensionPolicy(point, x)
	if err != nil {
		return err
	}
	out.WriteString(fencedBlock("rego", text) + "\n")
	return nil
}

// rankedPlaces says what the rule rank of users ranks at a point.
func rankedPlaces(point decision.Name) string {
	switch point {
	case "node/rank", "placement/broadcast":
		return "nodes"
	case "placement/allocation", "placement/subset":
		return "subsets"
	}
	return "pods"
}

func (w *writer) writeOverride(out *strings.Builder, p decision.UntypedPoint) error {
	text, err := overridePolicy(p.Name)
	if err != nil {
		return err
	}
	domain, rule, _ := strings.Cut(string(p.Name), "/")
	fmt.Fprintf(out, "## Replace it\n\nThe rule `%s` in `package override.%s`; only bundles of the platform may have it, and only one of them. A clamp in Go bounds it\nall the same.\n\n%s\n", rule, domain, fencedBlock("rego", text))
	return nil
}

// renderIndex lists the pages.
func (w *writer) renderIndex() string {
	var out strings.Builder
	out.WriteString("# Decision points\n\n" + made)
	out.WriteString("Every decision is asked at one of these points. Each page has the input that a policy gets there, what it may answer, what is\nbuilt in, what happens without an answer, and how to change it. [How to write, test and ship policies](../README.md).\n\n")
	out.WriteString("| point | it | extended by | answers within |\n|---|---|---|---|\n")
	for _, p := range catalog.All() {
		var rules []string
		for _, x := range w.builtin.pointExtensions(p.Name) {
			rules = append(rules, "`"+x.Rule+"`")
		}
		first, _, _ := strings.Cut(w.asked[pointFunction(p.Name)], ". ")
		fmt.Fprintf(&out, "| [%s](%s) | %s | %s | %s |\n", p.Name, pageFile(p.Name), strings.TrimSuffix(first, "."), strings.Join(rules, ", "), p.Budget)
	}
	return out.String()
}
