// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/charts/release/image"
)

func TestFindOrigin(t *testing.T) {
	folder := t.TempDir()
	runGit := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.test"}, args...)...)
		command.Env = append(command.Environ(), "GIT_COMMITTER_DATE=2026-11-01T00:00:00Z")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, output)
		}
	}
	if _, err := image.FindOrigin(t.Context(), folder); err == nil || !strings.Contains(err.Error(), "git rev-parse") {
		t.Errorf("a folder without a repository: %v", err)
	}
	runGit("init", "-q")
	runGit("commit", "-q", "--allow-empty", "-m", "a")
	runGit("tag", "v0.2.0")
	o, err := image.FindOrigin(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if o.Version != "v0.2.0" || len(o.Revision) != 40 || o.Created.Format("2006-01-02") != "2026-11-01" {
		t.Errorf("got %+v", o)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	if o, err = image.FindOrigin(t.Context(), folder); err != nil || o.Created.Unix() != 86400 {
		t.Errorf("with SOURCE_DATE_EPOCH: %+v, %v", o, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err = image.FindOrigin(t.Context(), folder); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("with a time that is no number: %v", err)
	}
}
