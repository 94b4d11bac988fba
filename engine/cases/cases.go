// SPDX-License-Identifier: Apache-2.0

// Package cases runs test cases of decisions that are written as data: the input, and the expected
// answer. The format is described in policies/cases/README.md.
package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/document"
	"github.com/regatta-sh/regatta/engine/module"
)

// File is a file of cases.
type File struct {
	Path     string   `json:"-"`
	Defaults Defaults `json:"defaults"`
	Cases    []Case   `json:"cases"`
}

// Defaults apply to all cases of a file.
type Defaults struct {
	// Input is merged under the input of each case, at every depth.
	Input map[string]any `json:"input"`
}

// Case is an input and the expected parts of the answer.
type Case struct {
	Name  string        `json:"name"`
	Point decision.Name `json:"point"`
	// Bundles are files of a user's bundle that is active too.
	Bundles map[string]string `json:"bundles,omitempty"`
	Input   map[string]any    `json:"input"`
	// Want is the expected part of the answer: of maps only the given keys are compared, lists as a whole.
	Want map[string]any `json:"want"`
	// WantRules are ids of rules that must have taken part.
	WantRules []string `json:"wantRules,omitempty"`
	// WantOutcome is the expected outcome; Decided if empty.
	WantOutcome decision.Outcome `json:"wantOutcome,omitempty"`
	// Row and Col are where the case begins in its file, from 1.
	Row int `json:"-"`
	Col int `json:"-"`
}

// Read finds the files of cases: YAML files, with a name that marks them, below a folder named cases,
// which may be the root. If some files have errors, it returns module.Problems and the other files.
func Read(fsys fs.FS) ([]File, error) {
	var out []File
	var wrong module.Problems
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isCases(p) {
			return err
		}
		text, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		f, err := ParseFile(p, text)
		var ps module.Problems
		if errors.As(err, &ps) {
			wrong = append(wrong, ps...)
			return nil
		}
		out = append(out, f)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading cases: %w", err)
	case len(wrong) > 0:
		return out, fmt.Errorf("reading cases: %w", wrong)
	}
	return out, nil
}

func isCases(p string) bool {
	if ext := path.Ext(p); ext != ".yaml" && ext != ".yml" {
		return false
	}
	return slices.Contains(strings.Split(path.Dir(p), "/"), "cases")
}

// ParseFile reads one file. An unknown field is an error. Errors are module.Problems.
func ParseFile(name string, text []byte) (File, error) {
	wrong := func(err error) (File, error) {
		at := document.Error{Row: 1, Col: 1}
		errors.As(err, &at)
		return File{}, module.Problems{{File: name, Row: at.Row, Col: at.Col, Code: "case_error", Message: err.Error()}}
	}
	asJSON, err := document.FromYAML(text)
	if err != nil {
		return wrong(err)
	}
	f := File{Path: name}
	dec := json.NewDecoder(bytes.NewReader(asJSON))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(&f); err != nil {
		return wrong(document.ExplainError(nil, err))
	}
	for i, at := range casePositions(text, len(f.Cases)) {
		c := &f.Cases[i]
		c.Row, c.Col = at.Line, at.Column
		if c.Name == "" || c.Point == "" {
			return wrong(document.Error{Row: c.Row, Col: c.Col, Message: fmt.Sprintf("case %d needs a name and a point", i+1)})
		}
	}
	return f, nil
}

// casePositions returns where the cases of a file begin: they are decoded from JSON, which does not
// have the positions.
func casePositions(text []byte, n int) []yaml.Node {
	var file struct{ Cases []yaml.Node }
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Cases) != n {
		return slices.Repeat([]yaml.Node{{Line: 1, Column: 1}}, n)
	}
	return file.Cases
}

// CaseInput returns the input of a case, as the type of its point.
func (f File) CaseInput(c Case, p decision.UntypedPoint) (any, error) {
	text, err := json.Marshal(mergeInput(f.Defaults.Input, c.Input))
	if err != nil {
		return nil, err
	}
	return DecodeInput(p, text)
}

// DecodeInput reads the input of a point. A missing field is zero; an unknown field is an error.
func DecodeInput(p decision.UntypedPoint, text []byte) (any, error) {
	v := reflect.New(p.In)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v.Interface()); err != nil {
		return nil, fmt.Errorf("reading the input of %s: %w", p.Name, document.ExplainError(nil, err))
	}
	return v.Elem().Interface(), nil
}

// mergeInput merges over into under: maps key by key, all other values as a whole.
func mergeInput(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range over {
		below, ok := out[k].(map[string]any)
		above, both := v.(map[string]any)
		if ok && both {
			v = mergeInput(below, above)
		}
		out[k] = v
	}
	return out
}
