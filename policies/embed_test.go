// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/policies"
)

// notDomains are the folders beside the domains.
var notDomains = []string{"cases", "docs", "examples", "schemas"}

func TestEveryPolicyOfADomainIsEmbeddedAndNoTestIs(t *testing.T) {
	var want []string
	walk(t, os.DirFS("."), func(name string) {
		domain, _, _ := strings.Cut(name, "/")
		if strings.HasSuffix(name, ".rego") && !strings.HasSuffix(name, "_test.rego") && !slices.Contains(notDomains, domain) {
			want = append(want, name)
		}
	})
	var got []string
	walk(t, policies.Builtin, func(name string) { got = append(got, name) })
	if !slices.Equal(got, want) {
		t.Errorf("embedded are %v, want %v", got, want)
	}
}

func walk(t *testing.T, files fs.FS, visit func(name string)) {
	t.Helper()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			visit(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
