// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bounded"
	"github.com/regatta-sh/regatta/engine/document"
	"github.com/regatta-sh/regatta/engine/module"
)

// Limits on what is read: a bundle is text that authors wrote.
const (
	maxFiles = 2000
	maxFile  = 1 << 20
	maxTotal = 8 << 20
)

// FromFS makes a bundle from a file system. Folders named cases, examples and schemas, hidden folders,
// and hidden files except the manifest are no part of it.
func FromFS(name string, fsys fs.FS, opts ...Option) (*Bundle, error) {
	files := map[string]string{}
	total := 0
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(p)
		if d.IsDir() {
			if p != "." && (strings.HasPrefix(base, ".") || slices.Contains([]string{"cases", "examples", "schemas"}, base)) {
				return fs.SkipDir
			}
			return nil
		}
		// Hidden files belong to editors and systems, and cannot always be read: Emacs keeps a broken link
		// beside a file that is being edited.
		if !isBundleFile(p) || strings.HasPrefix(base, ".") && p != manifestFile {
			return nil
		}
		if err := checkFileName(p); err != nil {
			return err
		}
		text, err := readFile(fsys, p)
		if err != nil {
			return err
		}
		files[p] = text
		if total += len(text); total > maxTotal || len(files) > maxFiles {
			return TooLargeError{Name: name}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading bundle %s: %w", name, err)
	}
	return FromFiles(name, files, opts...)
}

// ReadBuiltin reads the policies of a program, with the name that they have in records.
func ReadBuiltin(fsys fs.FS) (*Bundle, error) {
	b, err := FromFS("builtin", fsys, AsBuiltin())
	if err != nil {
		return nil, fmt.Errorf("reading the built-in policies: %w", err)
	}
	return b, nil
}

func readFile(fsys fs.FS, p string) (string, error) {
	f, err := fsys.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = TooLargeError{Name: p}
	}
	return string(b), err
}

// TooLargeError says that a bundle, or a file of one, is larger than is read.
type TooLargeError struct{ Name string }

func (e TooLargeError) Error() string {
	return fmt.Sprintf("%s is too large: a bundle has at most %d files, %d bytes each and %d together", e.Name, maxFiles, maxFile, maxTotal)
}

// isBundleFile reports whether a file is part of a bundle: a module, data that has the
// name OPA expects, or the manifest.
func isBundleFile(p string) bool {
	if p == manifestFile {
		return true
	}
	switch path.Base(p) {
	case "data.json", "data.yaml", "data.yml":
		return true
	}
	return path.Ext(p) == ".rego"
}

func (b *Bundle) addFile(p, text string) error {
	p = path.Clean(strings.TrimPrefix(p, "/"))
	if !isBundleFile(p) {
		return nil
	}
	if _, ok := b.Files[p]; ok {
		return module.Problems{{File: p, Row: 1, Col: 1, Code: "duplicate_error", Message: "the file is there twice"}}
	}
	b.Files[p] = text
	if p == manifestFile {
		return b.readManifest(text)
	}
	if path.Ext(p) != ".rego" {
		return b.addData(p, text)
	}
	parsed, err := module.Parse(p, text)
	if err != nil {
		return err
	}
	if module.IsTest(p) {
		b.Tests[p] = parsed
	} else {
		b.Modules[p] = parsed
	}
	return nil
}

// addData adds a document below the path of its folder, as OPA does.
func (b *Bundle) addData(p, text string) error {
	doc, err := decodeDocument(p, []byte(text))
	if err != nil {
		return badDocument(p, "data_error", "reading data", err)
	}
	if at, err := checkNumbers(doc); err != nil {
		return module.Problems{{File: p, Row: 1, Col: 1, Code: "data_error", Message: fmt.Sprintf("the data at %s: %v", at, err)}}
	}
	if dir := path.Dir(p); dir != "." {
		steps := strings.Split(dir, "/")
		slices.Reverse(steps)
		for _, step := range steps {
			doc = map[string]any{step: doc}
		}
	}
	b.documents[p] = doc
	if at := mergeDocument(b.Data, doc); at != "" {
		return module.Problems{{File: p, Row: 1, Col: 1, Code: "data_error", Message: fmt.Sprintf("the data at %s is there twice", at)}}
	}
	return nil
}

// checkNumbers refuses numbers that are slow to compare in OPA, and returns the path of the first one.
func checkNumbers(value any) (at string, err error) {
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if at, err := checkNumbers(v[k]); err != nil {
				return path.Join(k, at), err
			}
		}
	case []any:
		for i, below := range v {
			if at, err := checkNumbers(below); err != nil {
				return path.Join(strconv.Itoa(i), at), err
			}
		}
	case json.Number:
		return "", bounded.CheckNumber(ast.Number(v))
	}
	return "", nil
}

// decodeDocument reads a .json file as JSON and not as YAML, as OPA does: the rules for strings and
// keys differ.
func decodeDocument(p string, text []byte) (doc map[string]any, err error) {
	source := text
	if path.Ext(p) == ".json" {
		err = document.CheckJSON(text)
	} else {
		source = nil // the positions in the decoded text are not those in the source
		text, err = document.FromYAML(text)
	}
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return nil, document.ExplainError(source, err)
	}
	return doc, nil
}

// badDocument reports where a document is invalid.
func badDocument(file, code, doing string, err error) error {
	at := document.Error{Row: 1, Col: 1}
	errors.As(err, &at)
	return module.Problems{module.ProblemAt(ast.NewLocation(nil, file, at.Row, at.Col), "%s: %v", doing, err).WithCode(code)}
}

// mergeDocument adds a document to another, and returns the path at which both have a
// value.
func mergeDocument(into, doc map[string]any) string {
	for _, k := range slices.Sorted(maps.Keys(doc)) {
		there, both := into[k]
		below, isObject := there.(map[string]any)
		more, areObjects := doc[k].(map[string]any)
		switch {
		case areObjects && (!both || isObject):
			if !both {
				below = map[string]any{} // the documents themselves must not change
				into[k] = below
			}
			if at := mergeDocument(below, more); at != "" {
				return k + "/" + at
			}
		case both:
			return k
		default:
			into[k] = doc[k]
		}
	}
	return ""
}

func asProblems(err error) (module.Problems, bool) {
	var ps module.Problems
	ok := errors.As(err, &ps)
	return ps, ok
}
