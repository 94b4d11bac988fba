// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const chart = "../kruise"

func TestTheReadmeSaysWhatTheSchemaSays(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := renderTable(chart)
	if err != nil {
		t.Fatal(err)
	}
	want, err := replaceTable(string(page), rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("README.md is stale; run make generate:\n%s", diff)
	}
	for _, link := range section.FindAllStringSubmatch(want, -1) {
		t.Errorf("%q is no link", link[0])
	}
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^###? (.*)$`).FindAllStringSubmatch(string(page), -1) {
		sections[strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")] = true
	}
	for _, link := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(rows, -1) {
		if !sections[link[1]] {
			t.Errorf("there is no section #%s", link[1])
		}
	}
}

// Artifact Hub and editors show what the schema says of a value.
func TestTheSchemaDescribesEveryProperty(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	described := 0
	// Beside a reference only that is said which is true of this value alone.
	var walk func(path string, at any, beside bool)
	walk = func(path string, at any, beside bool) {
		if list, ok := at.([]any); ok {
			for _, one := range list {
				walk(path, one, beside)
			}
		}
		object, _ := at.(map[string]any)
		if _, refers := object["$ref"]; refers {
			beside = true
		}
		for key, value := range object {
			below, isMap := value.(map[string]any)
			if key != "properties" && key != "definitions" || !isMap {
				walk(path+"."+key, value, beside)
				continue
			}
			for name, property := range below {
				described++
				says, _ := property.(map[string]any)
				if text, _ := says["description"].(string); text == "" && !beside {
					t.Errorf("%s.%s has no description", path, name)
				}
				walk(path+"."+name, property, beside)
			}
		}
	}
	walk("values", schema, false)
	if described < 100 {
		t.Errorf("it found %d properties", described)
	}
}
