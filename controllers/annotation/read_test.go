// SPDX-License-Identifier: Apache-2.0

package annotation_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	keyPattern = regexp.MustCompile(`(?m)^\s+(\w+)\s+(?:string )?= "[\w.-]+/[^"]*"`)
	usePattern = regexp.MustCompile(`\b[A-Z]\w+`)
)

// written are annotations that are written and never read.
func written() map[string]bool { return map[string]bool{"PullingImageByKey": true} }

// Each annotation of the API that a program reads is among those that the specs write hostile texts to.
func TestAllAnnotationsThatAreReadAreWrittenTo(t *testing.T) {
	const root = "../.."
	spec, err := os.ReadFile(filepath.Join(root, "test/e2e/hostile_kinds_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	sources(t, filepath.Join(root, "controllers"), func(_, text string) {
		for _, m := range keyPattern.FindAllStringSubmatch(text, -1) {
			keys[m[1]] = true
		}
	})
	if len(keys) < 50 {
		t.Fatalf("the API has %d keys: they are not found any more", len(keys))
	}
	for _, top := range []string{"controllers", "nodeagent"} {
		sources(t, filepath.Join(root, top), func(path, text string) {
			if strings.Contains(path, "/cmd/regatta/") { // the command line, which ends for its own user alone
				return
			}
			for line := range strings.SplitSeq(text, "\n") {
				if !strings.Contains(line, "nnotation") {
					continue
				}
				for _, key := range usePattern.FindAllString(line, -1) {
					if keys[key] && !written()[key] && !regexp.MustCompile(`\b`+key+`\b`).Match(spec) {
						t.Errorf("%s reads %s, and no spec writes a hostile text to it: %s", path, key, strings.TrimSpace(line))
					}
				}
			}
		})
	}
}

// sources reads the files in Go below a folder but for tests.
func sources(t *testing.T, folder string, each func(path, text string)) {
	t.Helper()
	if err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			each(path, string(text))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
