// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/regatta-sh/regatta/engine/schema"
)

// contract is where comments of the contract are, from the root.
const contract = "./engine/decision"

// fields is a table of all that a type has.
func fields(t reflect.Type) (string, error) {
	s, err := schema.Of(t, schema.WithComments("github.com/regatta-sh/regatta", contract))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("| field | type | always there | meaning |\n|---|---|---|---|\n")
	rows(&out, "", s)
	return out.String(), nil
}

// rows are the fields of an object, each followed by those below it.
func rows(out *strings.Builder, above string, s *jsonschema.Schema) {
	for f := s.Properties.Oldest(); f != nil; f = f.Next() {
		always := "no"
		if slices.Contains(s.Required, f.Key) {
			always = "yes"
		}
		path := above + f.Key
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", path, kind(f.Value), always, cell(f.Value.Description))
		below(out, path, f.Value)
	}
}

func below(out *strings.Builder, path string, s *jsonschema.Schema) {
	switch {
	case s.Items != nil:
		below(out, path+"[]", s.Items)
	case values(s) != nil:
		below(out, path+".*", values(s))
	case s.Properties.Len() > 0:
		rows(out, path+".", s)
	}
}

// kind is the type of a field in words.
func kind(s *jsonschema.Schema) string {
	switch {
	case s.Items != nil:
		return "list of " + kind(s.Items)
	case values(s) != nil:
		return "map of " + kind(values(s))
	}
	return s.Type
}

// values are those of a map; nil of an object whose fields are known.
func values(s *jsonschema.Schema) *jsonschema.Schema {
	if v := s.AdditionalProperties; v != nil && v.Type != "" {
		return v
	}
	return nil
}

// cell is a comment as it stands in a table.
func cell(comment string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(sentence(comment))
}
