// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each of these links tens of packages that no program uses, or templates that run methods by their names, for which the linker keeps
// all methods of all types.
func TestProgramsLinkNothingLarge(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	heavy := []string{"golang.org/x/net/trace", "html/template", "k8s.io/apiserver/pkg/server/options", "k8s.io/apiserver/pkg/storage", "go.etcd.io/etcd/client/v3"}
	for _, p := range ReleasePrograms() {
		command := exec.CommandContext(t.Context(), "go", "list", "-tags", Tags, "-deps", p.Package)
		command.Dir = root
		output, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		linked := strings.Fields(string(output))
		if len(linked) < 100 {
			t.Fatalf("%s links %d packages", p.Name, len(linked))
		}
		for _, path := range heavy {
			if slices.Contains(linked, path) {
				t.Errorf("%s links %s: go list -tags %s -deps -f '{{.ImportPath}}: {{.Imports}}' %s shows through which package", p.Name, path, Tags, p.Package)
			}
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "\nTAGS := "+Tags+"\n") {
		t.Errorf("make build has other tags than %s", Tags)
	}
}
