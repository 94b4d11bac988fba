// SPDX-License-Identifier: Apache-2.0

// Package bundle has policies as they are shipped: read from a folder, an archive or inline files, and
// admitted by a gate.
package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/regatta-sh/regatta/engine/module"
)

// Kind says who wrote a bundle, and so which rules it may have.
type Kind string

const (
	// Builtin is the bundle that answers every decision point; it is part of the binaries.
	Builtin Kind = "builtin"
	// Platform bundles may extend and replace the built-in one, for the whole cluster.
	Platform Kind = "platform"
	// Tenant bundles may only be stricter, and only in their own namespace.
	Tenant Kind = "tenant"
)

// Bundle is a set of modules and data that is activated as one. It is immutable once it is read.
type Bundle struct {
	Kind Kind
	// Namespace is the namespace in which a tenant's bundle decides; empty for other kinds.
	Namespace string
	// Canary has the namespaces, sorted and distinct, in which a canary of a platform bundle decides in
	// place of the bundle of the same name without Canary. It is nil for a bundle that decides everywhere.
	Canary []string
	// Withheld is true for a bundle that was rolled back and that nothing replaces. It stays in the set,
	// so that the points that it takes part in are known. At these points no decision is made, neither
	// with it nor without it.
	Withheld bool
	// Since is when the bundle was accepted; zero if that is not known. The order of activation in a
	// process does not show it, since a process that starts activates bundles in any order.
	Since time.Time
	Name  string
	// Revision is the SHA-256 of the content, in hexadecimal, independent of its packing. Users see its ShortRevision.
	Revision string
	// Manifest is the manifest of the bundle; empty if it has none.
	Manifest opabundle.Manifest
	// Signature is nil unless the bundle was read from an archive that has one.
	Signature *Signature
	// Modules are the policy, by file; Tests are the files that test it.
	Modules map[string]*ast.Module
	Tests   map[string]*ast.Module
	// Data is base data, below the path of the folder it was in.
	Data map[string]any
	// Files has the source of everything that was read.
	Files map[string]string

	// documents is the data by file, before it was put together.
	documents map[string]map[string]any
	heapBytes int
}

// Option sets properties of a bundle that are not in its files.
type Option func(*Bundle)

// AsTenant makes a bundle one of a namespace.
func AsTenant(namespace string) Option {
	return func(b *Bundle) { b.Kind, b.Namespace = Tenant, namespace }
}

// AsCanary makes a platform bundle decide only in these namespaces. "" is left out, since
// cluster-scoped objects cannot be selected; without namespaces the bundle decides nowhere.
func AsCanary(namespaces ...string) Option {
	return func(b *Bundle) {
		names := slices.DeleteFunc(slices.Clone(namespaces), func(ns string) bool { return ns == "" })
		slices.Sort(names)
		b.Canary = append([]string{}, slices.Compact(names)...)
	}
}

// AsWithheld makes a bundle withheld, like one that was rolled back: it stays in a set, but does not decide.
func AsWithheld() Option { return func(b *Bundle) { b.Withheld = true } }

// WithSince sets when a bundle was accepted.
func WithSince(t time.Time) Option { return func(b *Bundle) { b.Since = t } }

// WithheldCopy returns a withheld copy of the bundle.
func (b *Bundle) WithheldCopy() *Bundle {
	out := *b
	out.Withheld = true
	return &out
}

// AsBuiltin makes a bundle the one that answers every point.
func AsBuiltin() Option { return func(b *Bundle) { b.Kind = Builtin } }

// FromFiles makes a bundle from files by their paths: a platform bundle, unless an option says
// otherwise. Files other than modules and data are ignored.
func FromFiles(name string, files map[string]string, opts ...Option) (*Bundle, error) {
	b := &Bundle{
		Kind: Platform, Name: name, Data: map[string]any{}, Files: map[string]string{},
		Modules: map[string]*ast.Module{}, Tests: map[string]*ast.Module{}, documents: map[string]map[string]any{},
	}
	for _, o := range opts {
		o(b)
	}
	var wrong module.Problems
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := b.addFile(path, files[path]); err != nil {
			problems, ok := asProblems(err)
			if !ok {
				return nil, fmt.Errorf("reading bundle %s: %w", name, err)
			}
			wrong = append(wrong, problems...)
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("reading bundle %s: %w", name, wrong)
	}
	b.Revision, b.heapBytes = b.hashContent(), b.estimateHeapBytes()
	return b, nil
}

// shortDigits is how many digits of a revision users see. They identify a revision among few; another
// revision with the same digits can be forged.
const shortDigits = 12

// ShortRevision is a revision as users see it.
func ShortRevision(revision string) string { return revision[:min(len(revision), shortDigits)] }

// ShortID is an ID as users see it.
func ShortID(id string) string {
	name, revision, ok := strings.Cut(id, "@")
	if !ok {
		return id
	}
	return name + "@" + ShortRevision(revision)
}

// ShortIDs is ShortID of each.
func ShortIDs(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = ShortID(id)
	}
	return out
}

// ID names the bundle and its revision, as in records.
func (b *Bundle) ID() string {
	name := b.Name
	if b.Namespace != "" {
		name = b.Namespace + "/" + name
	}
	return name + "@" + b.Revision
}

// hashContent hashes the modules in order, each with its length, so that two sets of files never have
// the same input, and all data as one document. Tests and the manifest do not count, since they do not
// affect decisions.
func (b *Bundle) hashContent() string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(b.Modules)) {
		fmt.Fprintf(h, "%d:%s%d:%s", len(path), path, len(b.Files[path]), b.Files[path])
	}
	if len(b.Data) > 0 {
		_, _ = io.WriteString(h, "data:")
		_ = json.NewEncoder(h).Encode(b.Data) // read from JSON, so it can be written
	}
	return hex.EncodeToString(h.Sum(nil))
}
