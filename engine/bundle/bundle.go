// SPDX-License-Identifier: Apache-2.0

// Package bundle is policies as they are shipped: read from a folder, an
// archive or inline files, and let in by a gate.
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

// Kind says who wrote a bundle, and with it what it may say.
type Kind string

const (
	// Builtin answers every decision point; it is part of the binaries.
	Builtin Kind = "builtin"
	// Platform may extend and replace the built-in one, for the whole cluster.
	Platform Kind = "platform"
	// Tenant may only be stricter, and only in its own namespace.
	Tenant Kind = "tenant"
)

// Bundle is a set of modules and data that is activated as one. It does not
// change once it is read.
type Bundle struct {
	Kind Kind
	// Namespace is where a tenant's bundle holds; else it is empty.
	Namespace string
	// Canary is where a platform bundle that is tried out holds, in place of the
	// one of its name that has none: namespaces in their order, each once. It is
	// nil for a bundle that holds everywhere.
	Canary []string
	// Withheld is true of a bundle that was rolled back and that nothing replaces. It
	// stands where it stood, so that it is known what it takes part in, and no decision
	// is made with it or without it there.
	Withheld bool
	// Since is when it was let in; zero where that is not known. A process that starts makes
	// bundles active in any order.
	Since time.Time
	Name  string
	// Revision is the SHA-256 of the content, in hexadecimal, however it is packed. People are shown its ShortRevision.
	Revision string
	// Manifest is what the bundle says about itself; empty if it has none.
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

// Option says something about a bundle that its files do not.
type Option func(*Bundle)

// AsTenant makes a bundle one of a namespace.
func AsTenant(namespace string) Option {
	return func(b *Bundle) { b.Kind, b.Namespace = Tenant, namespace }
}

// AsCanary makes a platform bundle hold in these namespaces only. What has no
// namespace cannot be named, so "" is left out; without any it holds nowhere.
func AsCanary(namespaces ...string) Option {
	return func(b *Bundle) {
		names := slices.DeleteFunc(slices.Clone(namespaces), func(ns string) bool { return ns == "" })
		slices.Sort(names)
		b.Canary = append([]string{}, slices.Compact(names)...)
	}
}

// AsWithheld makes a bundle stand without deciding, as one that was rolled back does.
func AsWithheld() Option { return func(b *Bundle) { b.Withheld = true } }

// WithSince sets when a bundle was let in.
func WithSince(t time.Time) Option { return func(b *Bundle) { b.Since = t } }

// WithheldCopy is the bundle, withheld.
func (b *Bundle) WithheldCopy() *Bundle {
	out := *b
	out.Withheld = true
	return &out
}

// AsBuiltin makes a bundle the one that answers every point.
func AsBuiltin() Option { return func(b *Bundle) { b.Kind = Builtin } }

// FromFiles makes a platform bundle, unless an option says otherwise, of files
// by their paths. Other files than modules and data are ignored.
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

// shortDigits is how many digits of a revision people are shown. They name a
// revision among the few that one has at hand; another may be made that begins with
// the same.
const shortDigits = 12

// ShortRevision is a revision as people are shown it.
func ShortRevision(revision string) string { return revision[:min(len(revision), shortDigits)] }

// ShortID is what ID returns, as people are shown it.
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

// ID names the bundle and its revision, as records do.
func (b *Bundle) ID() string {
	name := b.Name
	if b.Namespace != "" {
		name = b.Namespace + "/" + name
	}
	return name + "@" + b.Revision
}

// hashContent covers the modules in an order, each with its length, so that no two sets
// of files have one text between them, and all data as one document. Tests and
// the manifest do not count: they decide nothing.
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
