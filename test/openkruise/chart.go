// SPDX-License-Identifier: Apache-2.0

package openkruise

import (
	"embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/test/install"
)

// chart has the objects of OpenKruise's chart by their names, labels and fields, but for
// the CRDs.
//
//go:embed chart
var chart embed.FS

// Chart writes a Helm chart that installs what OpenKruise's does, and returns its folder.
// The CRDs are Regatta's, which have the same versions and fields, without those of kinds
// that OpenKruise has not. Its manager is an image that answers nothing.
func Chart(t testing.TB) string {
	t.Helper()
	root, err := install.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, chart); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "chart")
	crds := filepath.Join(dir, "crd-files")
	if err := os.Mkdir(crds, 0o755); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, "charts", "kruise", "files", "crds", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("finding the CRDs: %v", err)
	}
	for _, path := range paths {
		if strings.Contains(path, "policybundles") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(crds, filepath.Base(path)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
