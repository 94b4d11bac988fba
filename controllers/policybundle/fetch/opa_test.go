// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/artifact"
	"github.com/regatta-sh/regatta/test/cluster/binaries"
)

// built makes a bundle with opa, and signs it, as people do who have no regatta.
func built(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	for p, text := range map[string]string{
		"src/freeze.rego":                     policy,
		"src/extend/rollout/freeze/data.json": `{"to": 5}`,
		"src/.manifest":                       `{"revision": "v1", "roots": ["extend/rollout/freeze"]}`,
		"key":                                 ours,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opa, err := binaries.Path(t.Context(), os.Stderr, "opa")
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), opa, "build", "--bundle", "src", "--signing-alg", "HS256", "--signing-key", "key", "--output", "bundle.tar.gz")
	run.Dir = dir
	if text, err := run.CombinedOutput(); err != nil {
		t.Fatalf("opa build: %v\n%s", err, text)
	}
	text, err := os.ReadFile(filepath.Join(dir, "bundle.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestWhatOPABuiltAndSignedPassesUnchanged also reads it, as the next stage does.
func TestWhatOPABuiltAndSignedPassesUnchanged(t *testing.T) {
	text := built(t)
	images := serve(t, images().ServeHTTP)
	reference, err := artifact.New(artifact.WithHTTP()).Push(t.Context(), strings.TrimPrefix(images.URL, "http://")+"/freeze:v1", text)
	if err != nil {
		t.Fatal(err)
	}
	files := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
	f := fetch.New(holding(t, configMap(nil, map[string][]byte{"bundle.tar.gz": text})))
	// opa names the key default, unless a flag sets another name.
	by := &bundle.Verification{Required: true, Keys: map[string]*opabundle.KeyConfig{"default": {Key: ours, Algorithm: "HS256"}}}
	for name, source := range map[string]fetch.Source{
		"a configmap": here,
		"a registry":  {OCI: &fetch.OCI{Reference: reference, Insecure: true}},
		"a server":    at(files.URL),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := f.FetchBundle(t.Context(), source, nil)
			same(t, got, err, text)
			b, err := bundle.FromArchive("freeze", bytes.NewReader(got.Archive), by)
			if err != nil || b.Signature == nil || !b.Signature.Verified || b.Manifest.Revision != "v1" {
				t.Fatalf("it is %+v, %v", b, err)
			}
			if data, err := json.Marshal(b.Data); err != nil || string(data) != `{"extend":{"rollout":{"freeze":{"to":5}}}}` {
				t.Errorf("the data is %s, %v", data, err)
			}
		})
	}
}
