package policies_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/policies"
)

func TestCases(t *testing.T) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	files, err := cases.Read(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	asked := map[decision.Name]int{}
	examples := exampleBundles(t)
	for _, file := range files {
		var set bundle.Set
		if parts := strings.Split(file.Path, "/"); parts[0] == "examples" {
			set = bundle.Set{examples[parts[1]]}
		}
		for _, r := range cases.Run(t.Context(), e, set, file) {
			if set == nil {
				asked[r.Point]++
			}
			for _, problem := range r.Problems {
				t.Errorf("%s: %s: %s", r.File, r.Name, problem)
			}
		}
	}
	for _, point := range decision.All() {
		if n := asked[point.Name]; n < 10 && point.Name != "rollout/rows" { // nobody answers it
			t.Errorf("%s has %d cases, want at least 10", point.Name, n)
		}
	}
}

// typed reads a document as a type of the contract. Fields that it leaves out
// are zero; fields that the contract does not have are mistakes.
func typed(t *testing.T, as reflect.Type, document any) any {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	value := reflect.New(as)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value.Interface()); err != nil {
		t.Fatalf("%s is no %s: %v", text, as, err)
	}
	return value.Elem().Interface()
}
