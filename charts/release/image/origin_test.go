// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

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

// newRepository is a repository with a module of two commits, and runs git in it.
func newRepository(t *testing.T) (folder string, runGit func(args ...string)) {
	t.Helper()
	folder = writeModule(t)
	runGit = func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.test"}, args...)...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, output)
		}
	}
	runGit("init", "-q")
	runGit("commit", "-q", "--allow-empty", "-m", "a")
	runGit("add", ".")
	runGit("commit", "-q", "-m", "b")
	return folder, runGit
}

func findOrigin(t *testing.T, folder string) image.Origin {
	t.Helper()
	o, err := image.FindOrigin(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The archive that a build wrote is in its folder at the next one, and clones find other lengths of a commit unique.
func TestABuildBesideItsArchiveMakesTheSameImage(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "env") // as go env -w writes them
	if err := os.WriteFile(settings, []byte("GOFLAGS=-buildvcs=true\nGOTOOLCHAIN=local\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOENV", settings)
	folder, _ := newRepository(t)
	build := func() (image.Origin, string) {
		o := findOrigin(t, folder)
		built, err := image.Build(t.Context(), folder, []image.Program{{Name: "b", Package: "./b"}}, []v1.Platform{{OS: "linux", Architecture: "amd64"}}, o, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return o, digestOf(t, built.Index).String()
	}
	o, before := build()
	if len(o.Version) != 12 || !strings.HasPrefix(o.Revision, o.Version) {
		t.Errorf("the version is %q, want 12 digits of %s", o.Version, o.Revision)
	}
	if err := os.WriteFile(filepath.Join(folder, "image.tar"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, after := build(); after != before {
		t.Errorf("the image is %s, and was %s before there was an archive", after, before)
	}
	t.Setenv("GOFIPS140", "latest")
	t.Setenv("GOWORK", filepath.Join(folder, "go.work"))
	if err := os.WriteFile(os.Getenv("GOWORK"), []byte("go 1.26.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := image.Build(t.Context(), folder, []image.Program{{Name: "b", Package: "./b"}}, []v1.Platform{{OS: "linux", Architecture: "amd64"}}, o, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if after := digestOf(t, built.Index).String(); after != before {
		t.Errorf("the image is %s, and was %s with other settings of Go", after, before)
	}
}

// No commit has what was changed, or was added and is compiled.
func TestSourcesThatDifferFromTheirCommitAreToldSo(t *testing.T) {
	for _, file := range []string{"b/b.go", "b/more.go"} {
		folder, _ := newRepository(t)
		if o := findOrigin(t, folder); o.Modified {
			t.Errorf("a clean clone: %+v", o)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte("package main\n\nfunc init() {}\n"+map[string]string{"b/b.go": "func main() {}\n"}[file]), 0o600); err != nil {
			t.Fatal(err)
		}
		o := findOrigin(t, folder)
		if !o.Modified || !strings.HasSuffix(o.Version, "-dirty") {
			t.Errorf("with another %s: %+v", file, o)
		}
		server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true)))
		defer server.Close()
		tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/regatta:dev")
		if err != nil {
			t.Fatal(err)
		}
		built, err := image.Build(t.Context(), folder, []image.Program{{Name: "b", Package: "./b"}}, []v1.Platform{{OS: "linux", Architecture: "amd64"}}, o, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := built.Push(t.Context(), tag)
		if err != nil {
			t.Fatal(err)
		}
		if said := readReferrer(t, tag.Context().Digest(digest.String()), string(image.ProvenanceType)); strings.Contains(said, "gitCommit") || !strings.Contains(said, `"modified": true`) {
			t.Errorf("with another %s the provenance is %s", file, said)
		}
	}
}

// A clone without its history tells another version of the same commit.
func TestACloneWithoutItsHistoryIsRefused(t *testing.T) {
	folder, runGit := newRepository(t)
	shallow := filepath.Join(t.TempDir(), "shallow")
	runGit("clone", "-q", "--depth=1", "file://"+folder, shallow)
	if _, err := image.FindOrigin(t.Context(), shallow); err == nil || !strings.Contains(err.Error(), "git fetch --unshallow --tags") {
		t.Errorf("got %v", err)
	}
	runGit("tag", "v0.2.0")
	runGit("clone", "-q", "--depth=1", "--branch=v0.2.0", "file://"+folder, shallow+"-tag")
	if o := findOrigin(t, shallow+"-tag"); o.Version != "v0.2.0" {
		t.Errorf("with a tag it is %+v", o)
	}
}
