// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
)

// CaseName is the name of the case of a counterexample.
func (c *Counterexample) CaseName() string {
	if len(c.Lost) > 0 {
		return fmt.Sprintf("%s of %s applies", c.Lost[0].Reason, c.Lost[0].Rule)
	}
	if c.Old == nil {
		return "a decision is made"
	}
	return "the answer stays " + c.Old.Verdict.Word
}

// WriteCase writes the counterexample as a file of cases, with the old answer as the wanted one.
func (c *Counterexample) WriteCase() ([]byte, error) {
	of := map[string]any{"name": c.CaseName(), "point": string(c.Point), "input": c.Input}
	switch {
	case c.Old == nil:
		of["want"] = map[string]any{}
	case c.Old.Outcome != decision.Decided:
		of["wantOutcome"], of["want"] = string(c.Old.Outcome), map[string]any{}
	default:
		want, err := asJSON(c.Old.Output)
		if err != nil {
			return nil, err
		}
		of["want"] = want
	}
	text, err := json.Marshal(map[string]any{"cases": []any{of}})
	if err != nil {
		return nil, fmt.Errorf("writing the case: %w", err)
	}
	return yamlFromJSON(text)
}

// yamlFromJSON writes JSON as YAML, with the name of a case first.
func yamlFromJSON(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("writing the case: %w", err)
	}
	blockStyle(&doc, 0)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, fmt.Errorf("writing the case: %w", err)
	}
	return out.Bytes(), nil
}

// blockStyle writes the outer mappings in lines of their own, and what is below input and want in one.
func blockStyle(n *yaml.Node, depth int) {
	const outer = 5
	switch {
	case n.Kind != yaml.ScalarNode && depth <= outer, n.Kind == yaml.ScalarNode && (n.Tag != "!!str" || isPlainText(n.Value)):
		n.Style = 0
	}
	if n.Kind == yaml.MappingNode {
		order := map[string]int{"name": -5, "point": -4, "input": -3, "wantOutcome": -2, "want": -1}
		if depth == 3 {
			sortPairs(n, func(key string) int { return order[key] })
		}
	}
	for _, c := range n.Content {
		blockStyle(c, depth+1)
	}
}

var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9/._ -]*[A-Za-z0-9.]$`)

// isPlainText reports whether every version of YAML reads a text without quotes as that text.
func isPlainText(s string) bool {
	return plainText.MatchString(s) && !slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "null"}, strings.ToLower(s))
}

// sortPairs sorts the entries of a mapping.
func sortPairs(n *yaml.Node, order func(string) int) {
	pairs := map[string][2]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		pairs[n.Content[i].Value] = [2]*yaml.Node{n.Content[i], n.Content[i+1]}
	}
	keys := slices.Collect(maps.Keys(pairs))
	slices.SortFunc(keys, func(a, b string) int { return order(a) - order(b) })
	n.Content = nil
	for _, k := range keys {
		n.Content = append(n.Content, pairs[k][0], pairs[k][1])
	}
}

// CheckCase reports whether a case file passes with the old policies and fails with the new ones, which
// is what makes it a test of the change.
func CheckCase(ctx context.Context, q Question, text []byte) error {
	f, err := cases.ParseFile("cases/counterexample.yaml", text)
	if err != nil {
		return fmt.Errorf("reading the case: %w", err)
	}
	before, after, stop, err := newSides(ctx, q)
	defer stop()
	if err != nil {
		return fmt.Errorf("checking the case: %w", err)
	}
	passes := func(s *side) bool {
		all := cases.RunFile(ctx, s.engine, s.set, f, cases.InNamespace(q.Namespace))
		return len(all) == 1 && all[0].HasPassed()
	}
	switch {
	case len(q.New.Set) > 0 && !passes(before), q.Mode != NeverFails && !passes(before):
		return fmt.Errorf("checking the case: it does not pass with the old policies, because the format of cases cannot say that a field is left out")
	case passes(after):
		return fmt.Errorf("checking the case: it passes with the new policies too, because the format of cases cannot say that a field is left out")
	}
	return nil
}
