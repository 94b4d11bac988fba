// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/open-policy-agent/opa/v1/ast"
	opabundle "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/compile"

	"github.com/regatta-sh/regatta/engine/bundle"
)

const negated = "package extend.rollout.a\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if not input.workload.name == data.extend.rollout.a.name\n"

func sources() map[string]string {
	return map[string]string{
		"a.rego":                     "package extend.rollout.a\n\nimport future.keywords.not\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if not input.workload.name == data.extend.rollout.a.name\n",
		"lib/b.rego":                 "package extend.rollout.b\n\nrank := {}\n",
		"a_test.rego":                "package extend.rollout.a_test\n\ntest_a if true\n",
		"extend/rollout/a/data.yaml": "name: web # and <b>\n",
	}
}

func build(t testing.TB, files map[string]string, how bundle.Build) []byte {
	t.Helper()
	b, err := bundle.FromFiles("own", files)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := b.BuildArchive(&out, how); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWhatWeBuildOPATakes(t *testing.T) {
	seven := int64(7)
	text := build(t, sources(), bundle.Build{Revision: "v1.2", Sequence: &seven})
	theirs, err := opabundle.NewReader(bytes.NewReader(text)).WithProcessAnnotations(true).Read()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range theirs.Modules {
		names = append(names, m.Path)
	}
	if want := []string{"/a.rego", "/lib/b.rego"}; !slices.Equal(names, want) {
		t.Errorf("OPA reads %v, want %v", names, want)
	}
	if want := []string{"extend/rollout/a", "extend/rollout/b"}; !slices.Equal(*theirs.Manifest.Roots, want) {
		t.Errorf("the roots are %v, want %v", *theirs.Manifest.Roots, want)
	}
	if theirs.Manifest.Revision != "v1.2" || *theirs.Manifest.RegoVersion != 1 {
		t.Errorf("the manifest is %v", theirs.Manifest)
	}
	if data, _ := json.Marshal(theirs.Data); string(data) != `{"extend":{"rollout":{"a":{"name":"web"}}}}` {
		t.Errorf("the data is %s", data)
	}
	ours, err := bundle.FromArchive("own", bytes.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := bundle.FromFiles("own", sources())
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := ours.ManifestSequence(); n != 7 || !ok || ours.Revision != folder.Revision {
		t.Errorf("it has the sequence %d, %v and the revision %s, and the folder %s", n, ok, ours.Revision, folder.Revision)
	}
	if ps := ours.CheckContract(); len(ps) > 0 {
		t.Error(ps)
	}
}

func TestANegationThatOPAWouldReadAnotherWayIsMarked(t *testing.T) {
	theirs, err := opabundle.NewReader(bytes.NewReader(build(t, map[string]string{"a.rego": negated}, bundle.Build{}))).Read()
	if err != nil {
		t.Fatal(err)
	}
	if v := *theirs.Manifest.RegoVersion; v != 2 {
		t.Errorf("Rego has the version %d there", v)
	}
}

func TestTwoBuildsAreTheSameBytes(t *testing.T) {
	first := build(t, sources(), bundle.Build{Tests: true})
	for range 20 {
		if !bytes.Equal(first, build(t, sources(), bundle.Build{Tests: true})) {
			t.Fatal("a build is not the one before")
		}
	}
	b, err := bundle.FromArchive("own", bytes.NewReader(first), nil)
	if err != nil || len(b.Tests) != 1 {
		t.Fatalf("got %v, %v", b, err)
	}
	var again bytes.Buffer
	if err := b.BuildArchive(&again, bundle.Build{Tests: true}); err != nil || !bytes.Equal(first, again.Bytes()) {
		t.Errorf("a build of what was built is another one: %v", err)
	}
}

func TestAManifestIsKept(t *testing.T) {
	files := sources()
	files[".manifest"] = `{"revision": "mine", "roots": ["extend"], "metadata": {"team": "shop", "regatta": {"sequence": 3, "x": 1}}}`
	four := int64(4)
	text := build(t, files, bundle.Build{Sequence: &four})
	b, err := bundle.FromArchive("own", bytes.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(b.Manifest)
	if want := `{"revision":"mine","roots":["extend"],"rego_version":1,"metadata":{"regatta":{"sequence":4,"x":1},"team":"shop"}}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	minus := int64(-1)
	if err := b.BuildArchive(&bytes.Buffer{}, bundle.Build{Sequence: &minus}); err == nil {
		t.Error("a sequence below zero was written")
	}
}

func TestSequences(t *testing.T) {
	of := func(manifest string) *bundle.Bundle {
		b, err := bundle.FromFiles("own", map[string]string{"a.rego": policy, ".manifest": manifest})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	at := func(n string) *bundle.Bundle { return of(`{"metadata": {"regatta": {"sequence": ` + n + `}}}`) }
	for name, tc := range map[string]struct {
		candidate, active *bundle.Bundle
		err               string
	}{
		"a higher one follows":            {candidate: at("8"), active: at("7")},
		"the same one follows":            {candidate: at("7"), active: at("7")},
		"any follows none":                {candidate: at("0"), active: of(`{"revision": "x"}`)},
		"none follows none":               {candidate: of("{}"), active: of("{}")},
		"a large number is kept as it is": {candidate: at("9223372036854775806"), active: at("9223372036854775807"), err: "lower than 9223372036854775807"},
		"a lower one does not follow":     {candidate: at("6"), active: at("7"), err: "bundle own has the sequence 6, which is lower than 7 of the active one"},
		"none does not follow":            {candidate: of("{}"), active: at("7"), err: "bundle own has no sequence, and the active one has 7"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.candidate.FollowsActive(tc.active)
			var older bundle.OlderError
			if (tc.err == "") != (err == nil) || tc.err != "" && (!errors.As(err, &older) || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}

// TestWhatOPABuildsWeTake builds and signs with what `opa build --bundle
// --signing-key` runs.
func TestWhatOPABuildsWeTake(t *testing.T) {
	keys := rsaKeys(t)
	dir := t.TempDir()
	files := sources()
	files[".manifest"] = `{"revision": "theirs", "metadata": {"regatta": {"sequence": 12}}}`
	for p, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(p)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	c := compile.New().WithAsBundle(true).WithPaths(dir).WithOutput(&out).WithRegoVersion(ast.RegoV1).
		WithBundleSigningConfig(opabundle.NewSigningConfig(keys.private, "RS256", ""))
	if err := c.Build(context.Background()); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.FromArchive("own", bytes.NewReader(out.Bytes()), trust(keys.public, ""))
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := b.ManifestSequence(); b.Manifest.Revision != "theirs" || n != 12 || !b.Signature.Verified {
		t.Errorf("the manifest is %v, the signature %+v", b.Manifest, b.Signature)
	}
	if len(b.Modules) != 2 || len(b.Tests) != 1 || len(b.Data) != 1 {
		t.Errorf("it has %v, %v, %v", b.Modules, b.Tests, b.Data)
	}
	if ps := b.CheckContract(); len(ps) > 0 {
		t.Error(ps)
	}
}

// TestWhatOPAWritesAgainWeTake reads what we built with OPA, has it signed and
// written by OPA, which puts all data into one file.
func TestWhatOPAWritesAgainWeTake(t *testing.T) {
	theirs, err := opabundle.NewReader(bytes.NewReader(build(t, sources(), bundle.Build{}))).Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.GenerateSignature(opabundle.NewSigningConfig(secret, "HS256", ""), "k", true); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := opabundle.Write(&out, theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.FromArchive("own", &out, trust(secret, "HS256")); err != nil {
		t.Error(err)
	}
}

func TestAFolderWithAManifest(t *testing.T) {
	b, err := bundle.FromFS("own", fstest.MapFS{"a.rego": {Data: []byte(policy)}, ".manifest": {Data: []byte(`{"revision": "7"}`)}, "x/.manifest": {Data: []byte(`{`)}})
	if err != nil || b.Manifest.Revision != "7" {
		t.Errorf("got %v, %v", b, err)
	}
}
