// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	validate "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/schema"
)

func TestEveryPointHasSchemasThatItsFallbackMeets(t *testing.T) {
	folder := t.TempDir()
	t.Chdir("../..") // comments are found by paths below the root of the module
	if err := schema.Write(folder, schema.WithComments("github.com/regatta-sh/regatta", "./engine/decision")); err != nil {
		t.Fatal(err)
	}
	for _, p := range catalog.All() {
		t.Run(string(p.Name), func(t *testing.T) {
			in := reflect.New(p.In).Elem().Interface()
			for side, v := range map[string]any{"input": full(p.In), "output": p.Undecided(in, true)} {
				path := filepath.Join(folder, string(p.Name)+"."+side+".json")
				if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `"description": "`) {
					t.Errorf("%s: %v\n%s", path, err, text)
				}
				s, err := validate.NewCompiler().Compile(path)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				// The engine writes a nil list as an empty one.
				text = bytes.ReplaceAll(text, []byte("null"), []byte("[]"))
				doc, err := validate.UnmarshalJSON(bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Validate(doc); err != nil {
					t.Errorf("%s does not meet its schema: %v", text, err)
				}
				doc.(map[string]any)["nope"] = 1
				if s.Validate(doc) == nil {
					t.Errorf("a field that does not exist meets the schema of %s", path)
				}
			}
		})
	}
}

// TestEveryFieldIsDescribed, since authors of policies see nothing else of it, in
// an editor and in policies/docs.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Chdir("../..")
	comments := schema.WithComments("github.com/regatta-sh/regatta", "./engine/decision")
	described := 0
	var look func(path string, s *jsonschema.Schema)
	look = func(path string, s *jsonschema.Schema) {
		if s == nil {
			return
		}
		for f := s.Properties.Oldest(); f != nil; f = f.Next() {
			below := path + "." + f.Key
			if described++; f.Value.Description == "" {
				t.Errorf("%s has no comment", below)
			}
			look(below, f.Value)
		}
		look(path+"[]", s.Items)
		look(path+".*", s.AdditionalProperties)
	}
	for _, p := range catalog.All() {
		for side, kind := range map[string]reflect.Type{"input": p.In, "output": p.Out} {
			s, err := schema.ReflectType(kind, comments)
			if err != nil {
				t.Fatal(err)
			}
			look(string(p.Name)+" "+side, s)
		}
	}
	if described < 100 {
		t.Errorf("there are %d fields only", described)
	}
}

// full fills maps, so that none is nil.
func full(t reflect.Type) any {
	v := reflect.New(t).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Map {
			f.Set(reflect.MakeMap(f.Type()))
		} else if f.Kind() == reflect.Struct {
			f.Set(reflect.ValueOf(full(f.Type())))
		}
	}
	return v.Interface()
}

func TestADomainNobodyDecidesInHasNoSchema(t *testing.T) {
	if _, err := schema.DomainInput("nope"); err == nil {
		t.Error("there is one")
	}
}
