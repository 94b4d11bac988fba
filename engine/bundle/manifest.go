// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	opabundle "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/regatta-sh/regatta/engine/document"
	"github.com/regatta-sh/regatta/engine/module"
)

const (
	manifestFile  = ".manifest"
	manifestError = "manifest_error" // the code of problems with it
)

// ManifestSequence is the number in the manifest under metadata.regatta.sequence; ok is false if there
// is none.
func (b *Bundle) ManifestSequence() (n int64, ok bool) {
	n, ok, err := parseSequence(b.Manifest)
	return n, ok && err == nil
}

func parseSequence(m opabundle.Manifest) (n int64, ok bool, err error) {
	ours, is := m.Metadata["regatta"].(map[string]any)
	if !is {
		if m.Metadata["regatta"] != nil {
			return 0, false, errors.New("metadata.regatta must be an object")
		}
		return 0, false, nil
	}
	v, is := ours["sequence"]
	if !is {
		return 0, false, nil
	}
	switch x := v.(type) {
	case json.Number:
		n, err = x.Int64()
	case int64:
		n = x
	default:
		err = fmt.Errorf("it is %v", v)
	}
	if err != nil || n < 0 {
		return 0, false, fmt.Errorf("metadata.regatta.sequence must be an integer from 0 to %d", int64(math.MaxInt64))
	}
	return n, true, nil
}

// OlderError refuses a bundle that is older than the active one: a signature does not expire, so an
// old error could be brought back.
type OlderError struct {
	Bundle string
	// Sequence is the sequence of the bundle, or nil if it has none.
	Sequence *int64
	Active   int64
}

func (e OlderError) Error() string {
	if e.Sequence == nil {
		return fmt.Sprintf("bundle %s has no sequence, and the active one has %d", e.Bundle, e.Active)
	}
	return fmt.Sprintf("bundle %s has the sequence %d, which is lower than %d of the active one", e.Bundle, *e.Sequence, e.Active)
}

// FollowsActive returns an OlderError if the bundle must not replace the active one, because its
// sequence is lower or missing.
func (b *Bundle) FollowsActive(active *Bundle) error {
	before, ok := active.ManifestSequence()
	if !ok {
		return nil
	}
	return b.FollowsSequence(before)
}

// FollowsSequence returns an OlderError if the bundle must not replace one with this sequence.
func (b *Bundle) FollowsSequence(before int64) error {
	switch n, ok := b.ManifestSequence(); {
	case !ok:
		return OlderError{Bundle: b.Name, Active: before}
	case n < before:
		return OlderError{Bundle: b.Name, Sequence: &n, Active: before}
	}
	return nil
}

// readManifest reads the manifest, and refuses parts that this build does not support.
func (b *Bundle) readManifest(text string) error {
	wrong := func(format string, args ...any) error {
		return module.Problems{{File: manifestFile, Row: 1, Col: 1, Code: manifestError, Message: "the manifest is wrong: " + fmt.Sprintf(format, args...)}}
	}
	var m opabundle.Manifest
	if err := util.NewJSONDecoder(strings.NewReader(text)).Decode(&m); err != nil {
		return badDocument(manifestFile, manifestError, "the manifest is wrong", document.ExplainError([]byte(text), err))
	}
	if len(m.WasmResolvers) > 0 {
		return wrong("wasm is not evaluated; build with opa build --target rego, which is the default")
	}
	versions := slices.Collect(maps.Values(m.FileRegoVersions))
	if m.RegoVersion != nil {
		versions = append(versions, *m.RegoVersion)
	}
	if i := slices.IndexFunc(versions, func(v int) bool { return v < 1 || v > 2 }); i >= 0 {
		return wrong("Rego of version %d is not read; versions 1 and 2 are", versions[i])
	}
	if _, _, err := parseSequence(m); err != nil {
		return wrong("%v", err)
	}
	if m.Roots != nil {
		for i, r := range *m.Roots {
			(*m.Roots)[i] = strings.Trim(r, "/")
		}
	}
	b.Manifest = m
	return nil
}

// checkRoots finds modules and data that are outside the roots of the manifest.
func (b *Bundle) checkRoots() (out module.Problems) {
	if b.Manifest.Roots == nil {
		return nil
	}
	roots := *b.Manifest.Roots
	for i, r := range roots {
		for _, other := range roots[:i] {
			if opabundle.RootPathsOverlap(r, other) {
				out = append(out, module.Problem{File: manifestFile, Row: 1, Col: 1, Code: manifestError, Message: fmt.Sprintf("the roots %q and %q overlap", other, r)})
			}
		}
	}
	for _, modules := range []map[string]*ast.Module{b.Modules, b.Tests} {
		for _, file := range slices.Sorted(maps.Keys(modules)) {
			m := modules[file]
			if !opabundle.RootPathsContain(roots, rootOf(m)) {
				out = append(out, module.ProblemAt(m.Package.Location, "package %s is outside of the roots %v that the manifest has", module.PackagePath(m), roots).WithCode(manifestError))
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(b.documents)) {
		for _, steps := range leafPaths(b.documents[file]) {
			p := strings.Join(steps, "/")
			if !opabundle.RootPathsContain(roots, p) {
				out = append(out, module.Problem{File: file, Row: 1, Col: 1, Code: manifestError, Message: fmt.Sprintf("the data at %s is outside of the roots %v that the manifest has", p, roots)})
			}
		}
	}
	return out
}

func rootOf(m *ast.Module) string {
	return strings.ReplaceAll(module.PackagePath(m), ".", "/")
}

// leafPaths returns the paths, sorted, of all values of a document that have nothing below them:
// values that are no objects, and empty objects.
func leafPaths(doc map[string]any, below ...string) (out [][]string) {
	for _, k := range slices.Sorted(maps.Keys(doc)) {
		p := append(slices.Clone(below), k)
		if inner, ok := doc[k].(map[string]any); ok && len(inner) > 0 {
			out = append(out, leafPaths(inner, p...)...)
		} else {
			out = append(out, p)
		}
	}
	return out
}
