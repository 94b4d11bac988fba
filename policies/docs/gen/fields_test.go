// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/schema"
)

// TestPoliciesOfAPageReadFieldsOfItsPoint is stricter than the gate, which takes the fields of any point of a domain: a policy that
// reads a field of another point compiles, and has no effect on the point of the page.
func TestPoliciesOfAPageReadFieldsOfItsPoint(t *testing.T) {
	all := pages(t)
	for _, p := range catalog.All() {
		if p.Name == "protection/guards" { // a guard comes with a denial, which protection/deletion evaluates
			continue
		}
		reflected, err := schema.ReflectType(p.In)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(reflected)
		if err != nil {
			t.Fatal(err)
		}
		var facts any
		if err := json.Unmarshal(text, &facts); err != nil {
			t.Fatal(err)
		}
		set := ast.NewSchemaSet()
		set.Put(ast.SchemaRootRef, facts)
		for i, block := range regexp.MustCompile("(?s)```rego\n(.*?)```").FindAllStringSubmatch(all[pageFile(p.Name)], -1) {
			t.Run(fmt.Sprintf("%s %d", p.Name, i), func(t *testing.T) {
				m, err := ast.ParseModuleWithOpts("page.rego", block[1], ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := module.Compile(map[string]*ast.Module{"page.rego": m}, module.WithSchemas(set)); err != nil {
					t.Errorf("%v in\n%s", err, block[1])
				}
			})
		}
	}
}
