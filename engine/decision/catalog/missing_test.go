// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"reflect"
	"testing"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// An input that has the facts of a workload, at any depth, and does not list those that are missing would have rules of
// users evaluated as if these facts were empty.
func TestEachInputWithMissingFactsListsThem(t *testing.T) {
	found := 0
	for _, p := range catalog.All() {
		if !hasMissingFacts(p.In, map[reflect.Type]bool{}) {
			continue
		}
		found++
		if !p.In.Implements(reflect.TypeFor[decision.InputWithMissingFacts]()) {
			t.Errorf("the input of %s has facts that may be missing, and does not implement InputWithMissingFacts", p.Name)
			continue
		}
		in := reflect.New(p.In)
		setMissingFact(in.Elem())
		if got := in.Elem().Interface().(decision.InputWithMissingFacts).ListMissingFacts(); len(got) != 1 {
			t.Errorf("the input of %s lists %d missing facts, want the one it has", p.Name, len(got))
		}
	}
	if found == 0 {
		t.Error("no input has facts that may be missing")
	}
}

func hasMissingFacts(in reflect.Type, seen map[reflect.Type]bool) bool {
	if in == reflect.TypeFor[[]decision.MissingFact]() {
		return true
	}
	if in.Kind() != reflect.Struct || seen[in] {
		return false
	}
	seen[in] = true
	for i := range in.NumField() {
		if hasMissingFacts(in.Field(i).Type, seen) {
			return true
		}
	}
	return false
}

// setMissingFact puts a fact into the first list of missing facts of a value.
func setMissingFact(in reflect.Value) bool {
	if in.Type() == reflect.TypeFor[[]decision.MissingFact]() {
		in.Set(reflect.ValueOf([]decision.MissingFact{{Fact: "workload.namespaceLabels"}}))
		return true
	}
	if in.Kind() != reflect.Struct {
		return false
	}
	for i := range in.NumField() {
		if setMissingFact(in.Field(i)) {
			return true
		}
	}
	return false
}
