// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPagesOfBothLanguagesAreWritten(t *testing.T) {
	folder := t.TempDir()
	if err := writePages("../../../..", folder); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"metrics.md": "## Alerts", "metrics.zh-CN.md": "## 告警"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s, %v", name, want, err)
		}
	}
	if err := writePages(folder, folder); err == nil {
		t.Error("pages are written outside of the repository")
	}
	if err := writePages("../../../..", filepath.Join(folder, "none")); err == nil {
		t.Error("pages are written into a folder that does not exist")
	}
}
