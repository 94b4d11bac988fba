// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/regatta-sh/regatta/engine/module"
)

// Build has the options of BuildArchive.
type Build struct {
	// Revision is for users. If empty, it is the revision of the manifest or, without one, the hash of the
	// content.
	Revision string
	// Sequence is the sequence of the manifest if it is nil.
	Sequence *int64
	// Tests are left out unless this is true.
	Tests bool
}

// BuildArchive writes an archive in OPA's bundle format, with a manifest. The same
// files make the same bytes.
func (b *Bundle) BuildArchive(w io.Writer, how Build) error {
	files := maps.Clone(b.Files)
	if !how.Tests {
		maps.DeleteFunc(files, func(p, _ string) bool { return module.IsTest(p) })
	}
	m, err := b.buildManifest(how)
	if err != nil {
		return fmt.Errorf("building bundle %s: %w", b.Name, err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("building bundle %s: %w", b.Name, err)
	}
	files[manifestFile] = string(text) + "\n"
	// The files are read again to find errors here that a cluster would refuse later.
	if _, err := FromFiles(b.Name, files); err != nil {
		return fmt.Errorf("building bundle %s: %w", b.Name, err)
	}
	if err := packArchive(w, files); err != nil {
		return fmt.Errorf("building bundle %s: %w", b.Name, err)
	}
	return nil
}

func (b *Bundle) buildManifest(how Build) (opabundle.Manifest, error) {
	modules := slices.Collect(maps.Values(b.Modules))
	if how.Tests {
		modules = slices.AppendSeq(modules, maps.Values(b.Tests))
	}
	m := b.Manifest
	if m.Revision == "" {
		m.Revision = ShortRevision(b.Revision)
	}
	if how.Revision != "" {
		m.Revision = how.Revision
	}
	if m.Roots == nil || slices.Equal(*m.Roots, []string{""}) {
		roots := b.ownRoots(modules)
		m.Roots = &roots
	}
	version := b.regoVersion(modules)
	m.RegoVersion, m.FileRegoVersions = &version, nil
	if how.Sequence != nil {
		ours := map[string]any{}
		if was, ok := m.Metadata["regatta"].(map[string]any); ok {
			ours = maps.Clone(was)
		}
		ours["sequence"] = *how.Sequence
		m.Metadata = maps.Clone(m.Metadata)
		if m.Metadata == nil {
			m.Metadata = map[string]any{}
		}
		m.Metadata["regatta"] = ours
	}
	_, _, err := parseSequence(m)
	return m, err
}

// ownRoots returns the packages and data paths of the bundle, so that OPA can have several bundles
// active together.
func (b *Bundle) ownRoots(modules []*ast.Module) []string {
	var paths []string
	for _, m := range modules {
		paths = append(paths, rootOf(m))
	}
	for _, doc := range b.documents {
		for _, steps := range leafPaths(doc) {
			paths = append(paths, strings.Join(steps[:min(3, len(steps))], "/"))
		}
	}
	slices.Sort(paths) // so that a root comes before what is below it
	out := []string{}
	for _, p := range paths {
		if !opabundle.RootPathsContain(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// regoVersion is 1, which every current OPA reads, unless a module would have another meaning in
// version 1 than in the cluster, or would not compile.
func (b *Bundle) regoVersion(modules []*ast.Module) int {
	other := func(m *ast.Module) bool {
		file := m.Package.Location.File
		_, err := ast.ParseModuleWithOpts(file, b.Files[file], ast.ParserOptions{RegoVersion: ast.RegoV1})
		return err != nil || module.UnimportedNot(m) != nil
	}
	if slices.ContainsFunc(modules, other) {
		return 2
	}
	return 1
}
