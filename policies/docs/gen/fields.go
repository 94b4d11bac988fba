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

// fieldTable is a table of all that a type has.
func fieldTable(t reflect.Type) (string, error) {
	s, err := schema.ReflectType(t, schema.WithComments("github.com/regatta-sh/regatta", contract))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("| field | type | always there | meaning |\n|---|---|---|---|\n")
	writeFieldRows(&out, "", s)
	return out.String(), nil
}

// writeFieldRows are the fields of an object, each followed by those below it.
func writeFieldRows(out *strings.Builder, above string, s *jsonschema.Schema) {
	for f := s.Properties.Oldest(); f != nil; f = f.Next() {
		always := "no"
		if slices.Contains(s.Required, f.Key) {
			always = "yes"
		}
		path := above + f.Key
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", path, typeText(f.Value), always, tableCell(f.Value.Description))
		writeNestedFields(out, path, f.Value)
	}
}

func writeNestedFields(out *strings.Builder, path string, s *jsonschema.Schema) {
	switch {
	case s.Items != nil:
		writeNestedFields(out, path+"[]", s.Items)
	case mapValueSchema(s) != nil:
		writeNestedFields(out, path+".*", mapValueSchema(s))
	case s.Properties.Len() > 0:
		writeFieldRows(out, path+".", s)
	}
}

// typeText is the type of a field in words.
func typeText(s *jsonschema.Schema) string {
	switch {
	case s.Items != nil:
		return "list of " + typeText(s.Items)
	case mapValueSchema(s) != nil:
		return "map of " + typeText(mapValueSchema(s))
	}
	return s.Type
}

// mapValueSchema are those of a map; nil of an object whose fields are known.
func mapValueSchema(s *jsonschema.Schema) *jsonschema.Schema {
	if v := s.AdditionalProperties; v != nil && v.Type != "" {
		return v
	}
	return nil
}

// tableCell is a comment as it stands in a table.
func tableCell(comment string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(joinLines(comment))
}
