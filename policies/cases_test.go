package policies_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/engine/decision"
)

// caseFile is a file of cases; cases/README.md describes it.
type caseFile struct {
	Defaults struct {
		Input map[string]any `json:"input"`
	} `json:"defaults"`
	Cases []struct {
		Name    string            `json:"name"`
		Point   decision.Name     `json:"point"`
		Bundles map[string]string `json:"bundles"`
		Input   map[string]any    `json:"input"`
		Want    map[string]any    `json:"want"`
	} `json:"cases"`
}

func TestCases(t *testing.T) {
	asked := map[decision.Name]int{}
	walk(t, os.DirFS("cases"), func(name string) {
		if !strings.HasSuffix(name, ".yaml") {
			return
		}
		file := readCases(t, "cases/"+name)
		for _, c := range file.Cases {
			asked[c.Point]++
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				point, ok := decision.Find(c.Point)
				if !ok {
					t.Fatalf("there is no decision point %q", c.Point)
				}
				input := typed(t, point.In, merged(file.Defaults.Input, c.Input))
				answer := evaluate(t, c.Point, input, c.Bundles)
				output := typed(t, point.Out, answer)
				if err := point.Check(input, output); err != nil {
					t.Errorf("the answer is refused: %v", err)
				}
				if diff := cmp.Diff(c.Want, part(answer, c.Want)); diff != "" {
					t.Errorf("want (-), got (+):\n%s", diff)
				}
			})
		}
	})
	for _, point := range decision.All() {
		if n := asked[point.Name]; n < 10 && point.Name != "rollout/rows" { // nobody answers it
			t.Errorf("%s has %d cases, want at least 10", point.Name, n)
		}
	}
}

func readCases(t *testing.T, path string) caseFile {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file caseFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return file
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

// merged puts the fields of over on those of under, at every depth.
func merged(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for _, key := range slices.Sorted(maps.Keys(over)) {
		below, ok := out[key].(map[string]any)
		above, both := over[key].(map[string]any)
		if ok && both {
			out[key] = merged(below, above)
			continue
		}
		out[key] = over[key]
	}
	return out
}

// part is what of a document is wanted: of maps the keys that want has, of all
// else everything.
func part(got any, want any) any {
	g, ok := got.(map[string]any)
	w, both := want.(map[string]any)
	if !ok || !both {
		return got
	}
	out := map[string]any{}
	for key := range w {
		if value, ok := g[key]; ok {
			out[key] = part(value, w[key])
		}
	}
	return out
}
