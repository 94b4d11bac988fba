// SPDX-License-Identifier: Apache-2.0

package helmchart_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/regatta-sh/regatta/charts/release/archive/archivetest"
	"github.com/regatta-sh/regatta/charts/release/helmchart"
	"github.com/regatta-sh/regatta/test/install"
)

func pack(t *testing.T, folder string) (*helmchart.Package, error) {
	t.Helper()
	return helmchart.PackChart(folder, "0.2.0", v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("a", 64)}, []byte("Anyone may have it.\n"), time.Unix(1_700_000_000, 0))
}

// What Helm leaves out, such as tests, is left out.
func TestAChartIsPackedAsHelmDoesIt(t *testing.T) {
	into := t.TempDir()
	if out, err := install.Helm(t, "../../kruise", "package", ".", "--version", "0.2.0", "--app-version", "0.2.0", "--destination", into); err != nil {
		t.Fatal(err, out)
	}
	opened, err := os.Open(filepath.Join(into, "kruise-0.2.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	want := archivetest.ReadTarGz(t, opened)
	ours, err := pack(t, "../../kruise")
	if err != nil {
		t.Fatal(err)
	}
	if ours.FileName() != "kruise-0.2.0.tgz" {
		t.Errorf("it is called %s", ours.FileName())
	}
	got := archivetest.ReadTarGz(t, strings.NewReader(string(ours.Content)))
	want["kruise/LICENSE"] = "Anyone may have it.\n"
	want["kruise/Chart.yaml"] = got["kruise/Chart.yaml"] // Helm drops its comments
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatal(diff)
	}
	for file := range want {
		if got[file] != want[file] {
			t.Errorf("%s is another one", file)
		}
	}
}

func TestThePackedChartSaysItsVersionAndTheDigestOfItsImage(t *testing.T) {
	folder := t.TempDir()
	for _, tc := range []struct{ name, chart, want, err string }{
		{name: "without annotations", chart: "name: a\nversion: 0.1.0 # ours\n# The image.\nappVersion: \"0.1.0\"\n",
			want: "name: a\nversion: \"0.2.0\" # ours\n# The image.\nappVersion: \"0.2.0\"\nannotations:\n  regatta.sh/image-digest: sha256:" + strings.Repeat("a", 64) + "\n"},
		{name: "with annotations", chart: "name: a\nversion: 0.1.0\nappVersion: 0.1.0\nannotations:\n  a: b\nhome: c\n",
			want: "name: a\nversion: \"0.2.0\"\nappVersion: \"0.2.0\"\nannotations:\n  a: b\n  regatta.sh/image-digest: sha256:" + strings.Repeat("a", 64) + "\nhome: c\n"},
		{name: "without a version", chart: "name: a\nappVersion: 0.1.0\n", err: "it has no version"},
		{name: "without a name", chart: "version: 0.1.0\nappVersion: 0.1.0\n", err: "has no name"},
		{name: "with a digest", chart: "name: a\nversion: 0.1.0\nappVersion: 0.1.0\nannotations: {regatta.sh/image-digest: b}\n", err: "without regatta.sh/image-digest"},
		{name: "with annotations that are no map", chart: "name: a\nversion: 0.1.0\nappVersion: 0.1.0\nannotations: []\n", err: "want a map"},
		{name: "that is no map", chart: "[]\n", err: "it is no map"},
		{name: "that is no YAML", chart: "{", err: "Chart.yaml of " + folder},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(folder, "Chart.yaml"), []byte(tc.chart), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := pack(t, folder)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, archivetest.ReadTarGz(t, strings.NewReader(string(p.Content)))["a/Chart.yaml"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Artifact Hub shows users what the annotations say, and a candidate is no release.
func TestTheAnnotationsOfACandidateAreItsOwn(t *testing.T) {
	for version, candidate := range map[string]string{"0.2.0": "false", "0.2.0-rc.1": "true"} {
		p, err := helmchart.PackChart("../../kruise", version, v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("a", 64)}, nil, time.Unix(1_700_000_000, 0))
		if err != nil {
			t.Fatal(err)
		}
		annotations, _ := p.Metadata["annotations"].(map[string]any)
		images, _ := annotations["artifacthub.io/images"].(string)
		if !strings.Contains(images, "  image: ghcr.io/regatta-sh/regatta:"+version+"\n") || strings.Contains(images, ":0.1.0") {
			t.Errorf("of %s the images are\n%s", version, images)
		}
		if got := annotations["artifacthub.io/prerelease"]; got != candidate {
			t.Errorf("of %s it says that it is a candidate: %v", version, got)
		}
	}
}

func TestFoldersThatAreNoChartAreRefused(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"has no Chart.yaml":                  {"values.yaml": ""},
		`"templates/*.bak" is no pattern of`: {"Chart.yaml": "name: a\nversion: 0.1.0\nappVersion: 0.1.0\n", ".helmignore": "# Old ones.\n\ntemplates/*.bak\n"},
		`"!a" is no pattern of`:              {"Chart.yaml": "name: a\nversion: 0.1.0\nappVersion: 0.1.0\n", ".helmignore": "!a\n"},
	} {
		folder := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := pack(t, folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	folder := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "Chart.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := pack(t, folder); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a link: %v", err)
	}
}
