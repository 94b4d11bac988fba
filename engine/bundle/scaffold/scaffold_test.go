// SPDX-License-Identifier: Apache-2.0

package scaffold_test

import (
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle/scaffold"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"change-freeze": "", "a--b": "", "x1": "", "rego": "", "inputs": "",
		"import": "is a word of Rego; take another, such as import-policy", "input": "is a word of Rego", "data": "is a word of Rego",
		"not": "is a word of Rego", "true": "is a word of Rego", "contains": "is a word of Rego", "if": "is a word of Rego",
		"": "is none", "Freeze": "is none", "a b": "is none", "../a": "is none", "1a": "is none", "a-": "is none",
	} {
		files, err := scaffold.New(name, scaffold.AllKinds()[0])
		switch {
		case want == "" && (err != nil || len(files) != 4):
			t.Errorf("%s: %v", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestEachTemplateIsFilledIn(t *testing.T) {
	for _, kind := range scaffold.AllKinds() {
		files, err := scaffold.New("change-freeze", kind)
		if err != nil {
			t.Errorf("%v: %v", kind, err)
		}
		if text := files["change-freeze.rego"]; !strings.Contains(text, "package extend."+kind.Domain+".change_freeze\n") {
			t.Errorf("%v is of another package: %s", kind, text)
		}
	}
}
