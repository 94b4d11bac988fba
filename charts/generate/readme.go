// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// writeReadme writes the table of values into the README of the chart: the defaults are those of values.yaml, the texts those
// of values.schema.json.
func writeReadme(chart string) error {
	path := filepath.Join(chart, "README.md")
	before, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the page of the chart: %w", err)
	}
	table, err := renderTable(chart)
	if err != nil {
		return err
	}
	after, err := replaceTable(string(before), table)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
		return fmt.Errorf("writing the page of the chart: %w", err)
	}
	return nil
}

const tableHeader = "| Value | Default | What it does |\n|---|---|---|\n"

// replaceTable puts the rows of values in the place of those that a page has.
func replaceTable(page, rows string) (string, error) {
	before, rest, found := strings.Cut(page, tableHeader)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		return "", errors.New("it has no table of values")
	}
	return before + tableHeader + rows + "\n" + after, nil
}

// renderTable writes a row for each default of a chart, in their order.
func renderTable(chart string) (string, error) {
	data, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		return "", fmt.Errorf("reading the schema: %w", err)
	}
	var schema node
	if err := json.Unmarshal(data, &schema); err != nil {
		return "", fmt.Errorf("parsing the schema: %w", err)
	}
	if data, err = os.ReadFile(filepath.Join(chart, "values.yaml")); err != nil {
		return "", fmt.Errorf("reading the defaults: %w", err)
	}
	var defaults yaml.Node
	if err := yaml.Unmarshal(data, &defaults); err != nil {
		return "", fmt.Errorf("parsing the defaults: %w", err)
	}
	var rows strings.Builder
	if err := writeRows(&rows, defaults.Content[0], nil, []*node{&schema}, schema.Definitions); err != nil {
		return "", err
	}
	return rows.String(), nil
}

// A node is what the schema says of a value. Beside a reference it says what is true of this value alone, which comes first.
type node struct {
	Description string           `json:"description"`
	Ref         string           `json:"$ref"`
	Properties  map[string]*node `json:"properties"`
	Definitions map[string]*node `json:"definitions"`
}

// listNodesBelow finds what nodes of one value say of a value in it.
func listNodesBelow(nodes []*node, key string, definitions map[string]*node) []*node {
	var found []*node
	for _, n := range nodes {
		for ; n != nil; n = definitions[strings.TrimPrefix(n.Ref, "#/definitions/")] {
			if one := n.Properties[key]; one != nil {
				found = append(found, one)
			}
		}
	}
	return found
}

// writeRows writes the rows of the values in a map of defaults, whose path and nodes are given.
func writeRows(rows *strings.Builder, defaults *yaml.Node, path []string, nodes []*node, definitions map[string]*node) error {
	for i := 0; i < len(defaults.Content); i += 2 {
		key, value := defaults.Content[i].Value, defaults.Content[i+1]
		at, of := append(path[:len(path):len(path)], key), listNodesBelow(nodes, key, definitions)
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
			if err := writeRows(rows, value, at, of, definitions); err != nil {
				return err
			}
			continue
		}
		name := strings.Join(at, ".")
		if len(of) == 0 || of[0].Description == "" {
			return fmt.Errorf("values.schema.json: %s has no description", name)
		}
		text, err := writeDefault(value)
		if err != nil {
			return fmt.Errorf("values.yaml: %s: %w", name, err)
		}
		fmt.Fprintf(rows, "| `%s` | `%s` | %s |\n", name, text, linkSections(of[0].Description))
	}
	return nil
}

// ambiguous are texts that YAML would read as something else, or as nothing.
var ambiguous = regexp.MustCompile(`^[0-9]*$`)

// writeDefault writes a default as it would be written in values.yaml.
func writeDefault(value *yaml.Node) (string, error) {
	if value.Tag == "!!str" && !ambiguous.MatchString(value.Value) {
		return value.Value, nil
	}
	var v any
	if err := value.Decode(&v); err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// section is how a description points to a section of the page.
var section = regexp.MustCompile(`([Ss]ee) ([A-Z][A-Za-z -]*) in README\.md`)

// linkSections makes links of what a description says of sections of the page.
func linkSections(text string) string {
	return section.ReplaceAllStringFunc(text, func(match string) string {
		words := section.FindStringSubmatch(match)
		return fmt.Sprintf("%s [%s](#%s)", words[1], words[2], strings.ReplaceAll(strings.ToLower(words[2]), " ", "-"))
	})
}
