// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/test/rules"
)

func TestCases(t *testing.T) {
	e := rules.Engine(t, "")
	asked := map[decision.Name]int{}
	for _, file := range caseFiles(t) {
		for _, r := range cases.RunFile(t.Context(), e, nil, file) {
			if exampleOf(file) == "" {
				asked[r.Point]++
			}
			for _, problem := range r.Problems {
				t.Errorf("%s: %s: %s", r.File, r.Name, problem)
			}
		}
	}
	for _, point := range catalog.All() {
		if n := asked[point.Name]; n < 10 && point.Name != "rollout/rows" { // no built-in policy answers it
			t.Errorf("%s has %d cases, want at least 10", point.Name, n)
		}
	}
}

// caseFiles are all cases here. Those of an example have its bundle.
func caseFiles(t *testing.T) []cases.File {
	t.Helper()
	files, err := cases.Read(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	examples := exampleBundles(t)
	for _, file := range files {
		name := exampleOf(file)
		if name == "" {
			continue
		}
		policy := map[string]string{}
		for path, text := range examples[name].Files {
			if !module.IsTest(path) {
				policy[path] = text
			}
		}
		for i := range file.Cases {
			file.Cases[i].Bundles = policy
		}
	}
	return files
}

// exampleOf is the example that a file of cases is of, or empty.
func exampleOf(file cases.File) string {
	if parts := strings.Split(file.Path, "/"); parts[0] == "examples" {
		return parts[1]
	}
	return ""
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
