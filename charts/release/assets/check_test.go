// SPDX-License-Identifier: Apache-2.0

package assets_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/charts/release/assets"
)

func TestVersionsAreRefusedByName(t *testing.T) {
	for version, want := range map[string]string{
		"v0.2.0": "", "v1.0.0-rc.1": "", "": "missing", "0.2.0": "want a v", "v0.2": "want a v", "v0.2.0.1": "want a v", "v01.2.0": "want a v", "latest": "want a v",
		"v0.2.0+build": "no tag of an image has a +", "vv0.2.0": "want a v", " v0.2.0": "want a v", "v0.2.0-": "want a v",
	} {
		if err := assets.CheckVersion(version); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", version, err, want)
		}
	}
}

// newRepository is a repository with one commit of some files, and runs git in it.
func newRepository(t *testing.T, files map[string]string) (folder string, runGit func(args ...string)) {
	t.Helper()
	folder = t.TempDir()
	runGit = func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.test"}, args...)...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, output)
		}
	}
	for file, text := range files {
		write(t, filepath.Join(folder, file), text)
	}
	runGit("init", "-q")
	runGit("add", ".")
	runGit("commit", "-q", "--allow-empty", "-m", "a")
	return folder, runGit
}

func TestAReleaseIsOfACommitThatHasItsTag(t *testing.T) {
	folder, runGit := newRepository(t, map[string]string{"a.go": "package a\n"})
	check := func(what string, pushed bool, want string) {
		t.Helper()
		_, err := assets.CheckSources(t.Context(), folder, "v0.2.0", pushed)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	check("no tag, and nothing is pushed", false, "")
	check("no tag", true, "has no tag v0.2.0")
	runGit("tag", "-a", "-m", "a", "v0.2.0")
	check("its tag", true, "")
	write(t, filepath.Join(folder, "templates", "more.tpl"), "")
	check("a file that Git does not know", false, "differ from their commit in 1 files")
	write(t, filepath.Join(folder, ".gitignore"), "/templates/\n")
	runGit("add", ".gitignore")
	check("a file that is not committed", false, "A  .gitignore")
	runGit("commit", "-q", "-m", "b")
	check("the tag of the commit before", false, "v0.2.0 is the tag of commit")
	runGit("tag", "-f", "v0.2.0")
	check("another tag", true, "")
}

// Git calls sources unchanged that have a file which it ignores. The compiler and the chart take that file.
func TestAReleaseHasNoFilesThatGitLeavesOut(t *testing.T) {
	for file, want := range map[string]string{
		"pkg/mine.go":                    "1 files that Git ignores would be a part of the release, and a release is made of a commit: remove them:\npkg/mine.go",
		"charts/kruise/values.mine":      "\ncharts/kruise/values.mine",
		"charts/kruise/templates/a.yaml": "\ncharts/kruise/templates/a.yaml",
		"charts/kruise/.DS_Store":        "", // no chart has it
		"pkg/notes.mine":                 "", // nothing is built of it
		"dist/values.yaml":               "", // a release that was made before
		"go.work":                        "", // builds do not read it
	} {
		folder, runGit := newRepository(t, map[string]string{
			"pkg/a.go": "package a\n", "charts/kruise/Chart.yaml": "name: a\n", "charts/kruise/.helmignore": ".DS_Store\n", "charts/kruise/templates/b.yaml": "",
		})
		write(t, filepath.Join(folder, ".git", "info", "exclude"), "*.mine\nmine.go\na.yaml\n.DS_Store\n/dist/\ngo.work\n")
		runGit("tag", "v0.2.0")
		write(t, filepath.Join(folder, file), "package a\n")
		origin, err := assets.CheckSources(t.Context(), folder, "v0.2.0", true)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
		if isSource := strings.HasSuffix(file, "mine.go") || strings.HasSuffix(file, "a.yaml"); origin.Modified != isSource {
			t.Errorf("%s: the sources are %s", file, origin.Version)
		}
	}
}

func TestReadNotes(t *testing.T) {
	const changelog = `# Changelog

## Unreleased

## v0.3.0

## [0.2.1] - 2026-11-01

Mended. See [the list](../../controllers/README.md#list), [this](#changelog) and [that](https://example.com/a).

### Workloads

- More.

## 0.2.0

First.
`
	folder := t.TempDir()
	write(t, filepath.Join(folder, "charts", "kruise", "CHANGELOG.md"), changelog)
	const sources = "https://github.com/regatta-sh/regatta/blob/"
	mended := func(version string) string {
		return "Mended. See [the list](" + sources + version + "/controllers/README.md#list), [this](" + sources + version + "/charts/kruise/CHANGELOG.md#changelog) and [that](https://example.com/a).\n\n### Workloads\n\n- More.\n"
	}
	for version, want := range map[string]string{"v0.2.0": "First.\n", "v0.2.1": mended("v0.2.1"), "v0.2.1-rc.1": mended("v0.2.1-rc.1")} {
		if got, err := assets.ReadNotes(folder, version); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", version, got, err, want)
		}
	}
	for _, version := range []string{"v0.3.0", "v0.4.0", "v0.2"} {
		if got, err := assets.ReadNotes(folder, version); err == nil || !strings.Contains(err.Error(), `CHANGELOG.md has no section "## `+version+`"`) {
			t.Errorf("%s: got %q, %v", version, got, err)
		}
	}
}

func TestDocumentsThatNameAnotherVersionAreFound(t *testing.T) {
	folder, _ := newRepository(t, map[string]string{
		"charts/kruise/Chart.yaml":   "version: 0.2.0\nappVersion: \"0.1.0\"\n",
		"charts/kruise/CHANGELOG.md": "helm install kruise oci://ghcr.io/regatta-sh/charts/kruise --version 0.0.1\n",
		"README.md": `helm install kruise oci://ghcr.io/regatta-sh/charts/kruise --version 0.2.0 --namespace default
helm install kruise oci://ghcr.io/regatta-sh/charts/kruise --version=v0.1.0
helm upgrade kruise kruise/kruise --version 1.8.0, which is OpenKruise's
Pull ghcr.io/regatta-sh/regatta:0.1.1.
`,
		"docs/a.md": "https://github.com/regatta-sh/regatta/releases/download/v0.1.2/regatta-v0.1.3-linux-amd64.tar.gz\nmake release VERSION=v0.2.0\n",
	})
	err := assets.CheckDocuments(t.Context(), folder, "v0.2.0")
	if err == nil {
		t.Fatal("none is found")
	}
	_, lines, _ := strings.Cut(err.Error(), "\n")
	if want := "README.md:2 names 0.1.0\nREADME.md:4 names 0.1.1\ncharts/kruise/Chart.yaml: appVersion is 0.1.0\ndocs/a.md:1 names 0.1.2\ndocs/a.md:1 names 0.1.3"; lines != want {
		t.Errorf("found\n%s\nwant\n%s", lines, want)
	}
	for version, want := range map[string]int{"v0.2.0-rc.1": 5, "v0.1.0": 6} {
		if err := assets.CheckDocuments(t.Context(), folder, version); err == nil || strings.Count(err.Error(), "\n") != want {
			t.Errorf("%s: %v, want %d lines", version, err, want)
		}
	}
}

// What a reader of the sources types has to be there: the version of the chart, which is the newest that the changelog has as released.
func TestOurDocumentsNameTheVersionOfTheChart(t *testing.T) {
	const root = "../../.."
	version := regexp.MustCompile(`(?m)^version: "?([^"\s]+)`).FindStringSubmatch(read(t, root, "charts/kruise/Chart.yaml"))
	if version == nil {
		t.Fatal("the chart has no version")
	}
	if err := assets.CheckDocuments(t.Context(), root, "v"+version[1]); err != nil {
		t.Error(err)
	}
	released := regexp.MustCompile(`(?m)^## \[?v?(\d\S*?)\]?(?: .*)?$`).FindStringSubmatch(read(t, root, "charts/kruise/CHANGELOG.md"))
	if released != nil && released[1] != version[1] {
		t.Errorf("the changelog's newest version is %s, and that of the chart %s", released[1], version[1])
	}
	readme := read(t, root, "README.md")
	if install := "helm install kruise oci://ghcr.io/regatta-sh/charts/kruise --version " + version[1]; !strings.Contains(readme, install) {
		t.Errorf("the README does not say %q", install)
	}
}
