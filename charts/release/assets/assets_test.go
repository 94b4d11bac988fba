// SPDX-License-Identifier: Apache-2.0

package assets_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/charts/release/archive/archivetest"
	"github.com/regatta-sh/regatta/charts/release/assets"
	"github.com/regatta-sh/regatta/charts/release/image"
	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/install"
)

// common is a release that most tests look at: making one takes seconds.
var common struct {
	sync.Once
	folder  string
	options assets.Options
	release *assets.Release
}

func TestMain(m *testing.M) {
	var err error
	if common.folder, err = os.MkdirTemp("", "regatta-release-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(common.folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// commonRelease makes the common release, once.
func commonRelease(t *testing.T) (assets.Options, *assets.Release) {
	t.Helper()
	common.Do(func() {
		source := filepath.Join(common.folder, "source")
		writeSources(t, source)
		common.options = options(t, source)
		common.options.Folder = filepath.Join(common.folder, "dist")
		common.release = makeRelease(t, common.options)
	})
	if common.release == nil {
		t.Fatal("the common release was not made")
	}
	return common.options, common.release
}

// writeSources writes a module with a small program, and our chart, into a folder.
func writeSources(t *testing.T, root string) {
	t.Helper()
	for file, text := range map[string]string{
		"go.mod": "module example.test/small\n\ngo 1.26.0\n", "LICENSE": "Anyone may have it.\n",
		"a/a.go": "package main\n\nimport \"runtime\"\n\nfunc main() { _, file, _, _ := runtime.Caller(0); println(file) }\n",
	} {
		write(t, filepath.Join(root, file), text)
	}
	if err := os.CopyFS(filepath.Join(root, "charts", "kruise"), os.DirFS(filepath.Join("..", "..", "kruise"))); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compileHere compiles for this machine, whatever is asked for: the library for another system takes minutes.
func compileHere(ctx context.Context, source string, programs []image.Program, _ v1.Platform, version, into string) ([]string, error) {
	return image.CompilePrograms(ctx, source, programs, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, version, into)
}

// options are those of a small release of v0.2.0 of sources in a folder.
func options(t *testing.T, source string) assets.Options {
	t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		var err error
		if helm, err = binaries.Path(t.Context(), os.Stderr, "helm"); err != nil {
			t.Fatal(err)
		}
	}
	program := image.Program{Name: "a", Package: "./a"}
	return assets.Options{
		Source: source, Version: "v0.2.0", Notes: "News.\n", Folder: filepath.Join(t.TempDir(), "dist"), Helm: helm, Compile: compileHere, Report: func(string) {},
		Origin:    image.Origin{Version: "v0.1.0-3-gaaaaaaaaaaaa", Revision: strings.Repeat("a", 40), Created: time.Unix(1_700_000_000, 0)},
		Platforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, Systems: []v1.Platform{{OS: "linux", Architecture: "arm64"}, {OS: "windows", Architecture: "amd64"}},
		Programs: []image.Program{program}, CommandLine: program,
	}
}

// makeRelease makes a release.
func makeRelease(t *testing.T, o assets.Options) *assets.Release {
	t.Helper()
	release, err := assets.WriteRelease(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// files are the files of a folder.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range entries {
		out[entry.Name()] = read(t, folder, entry.Name())
	}
	return out
}

// Two folders represent two machines.
func TestTwoReleasesOfACommitAreTheSame(t *testing.T) {
	one, _ := commonRelease(t)
	other := options(t, t.TempDir())
	writeSources(t, other.Source)
	makeRelease(t, other)
	made, again := files(t, one.Folder), files(t, other.Folder)
	for file, content := range made {
		if again[file] != content {
			t.Errorf("%s differs", file)
		}
	}
	architecture := runtime.GOARCH
	var want, sums []string
	for _, file := range []string{
		"NOTES.md", "a-v0.2.0-linux-arm64.spdx.json", "a-v0.2.0-linux-arm64.tar.gz", "a-v0.2.0-windows-amd64.spdx.json", "a-v0.2.0-windows-amd64.zip", "chart.digest", "image.digest",
		"index.yaml", "install-crds.yaml", "install.yaml", "krew.yaml", "kruise-0.2.0.tgz", "regatta-image-v0.2.0-linux-" + architecture + ".spdx.json",
		"regatta-image-v0.2.0.oci.tar", "regatta-image-v0.2.0.provenance.json",
	} {
		want = append(want, file)
		sums = append(sums, fmt.Sprintf("%x  %s", sha256.Sum256([]byte(made[file])), file))
	}
	if diff := cmp.Diff(strings.Join(sums, "\n")+"\n", made["SHA256SUMS"]); diff != "" || len(made) != len(want)+1 {
		t.Errorf("there are %d files, and the checksums are\n%s", len(made), diff)
	}
}

func TestAReleaseIsPinnedToItsImage(t *testing.T) {
	o, release := commonRelease(t)
	digest, err := release.Image.Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	named := "ghcr.io/regatta-sh/regatta@" + digest.String()
	if got := read(t, o.Folder, "image.digest"); got != named+"\n" {
		t.Errorf("image.digest has %s, want %s", got, named)
	}
	chart := filepath.Join(o.Folder, "kruise-0.2.0.tgz")
	for values, want := range map[string]string{
		"image.registry=mirror.example.com/a/":    "mirror.example.com/a/regatta-sh/regatta@" + digest.String(),
		"manager.image.tag=0.1.9":                 "ghcr.io/regatta-sh/regatta:0.1.9",
		"manager.image.repository=example.com/me": "example.com/me:0.2.0", // it may have an image of one's own
	} {
		rendered, err := install.Helm(t, "", "template", "kruise", chart, "--kube-version", "1.36.0", "--set", values)
		if err != nil {
			t.Fatal(err, rendered)
		}
		if n := strings.Count(rendered, `image: "`+want+`"`); n != 5 || strings.Count(rendered, " image: ") != n {
			t.Errorf("with %q, %d of 5 images are %s", values, n, want)
		}
	}
	if rendered := read(t, o.Folder, "install.yaml"); strings.Count(rendered, `image: "`+named+`"`) != 2 {
		t.Errorf("the manifest has other images than %s", named)
	}
	pushed, err := release.Chart.BuildArtifact()
	if err != nil {
		t.Fatal(err)
	}
	if digest, err = pushed.Digest(); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, o.Folder, "chart.digest"), "ghcr.io/regatta-sh/charts/kruise@"+digest.String()+"\n"; got != want {
		t.Errorf("chart.digest has %s, want %s", got, want)
	}
}

// Deleting the manifest of the manager keeps the objects of users.
func TestManifestsHaveAllOfTheChartButHooks(t *testing.T) {
	o, _ := commonRelease(t)
	count := func(file string) map[string]int {
		out := map[string]int{}
		for document := range strings.SplitSeq(read(t, o.Folder, file), "\n---\n") {
			var object struct{ Kind string }
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			if object.Kind != "" { // what is said before the first
				out[object.Kind]++
			}
		}
		return out
	}
	crds, err := filepath.Glob("../../kruise/files/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := count("install-crds.yaml"); got["CustomResourceDefinition"] != len(crds) || len(got) != 1 {
		t.Errorf("the file of CRDs has %v", got)
	}
	got := count("install.yaml")
	if got["Deployment"] != 1 || got["DaemonSet"] != 1 || got["Job"] != 0 || got["CustomResourceDefinition"] != 0 {
		t.Errorf("the manifest has %v", got)
	}
	if text := read(t, o.Folder, "install.yaml"); strings.Contains(text, "managed-by: Helm") || !strings.Contains(text, "kubectl apply --server-side -f install-crds.yaml -f install.yaml") {
		t.Error("the manifest says that Helm manages it, or not how it is applied")
	}
}

func TestTheArchiveOfTheImageHasItsDigestAndName(t *testing.T) {
	o, release := commonRelease(t)
	folder := t.TempDir()
	for file, content := range archivetest.ReadTar(t, strings.NewReader(read(t, o.Folder, "regatta-image-v0.2.0.oci.tar"))) {
		write(t, filepath.Join(folder, file), content)
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := release.Image.Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if m := manifest.Manifests; len(m) != 1 || m[0].Digest != digest || m[0].Annotations["io.containerd.image.name"] != "ghcr.io/regatta-sh/regatta:0.2.0" {
		t.Errorf("the archive has %+v, want %s", m, digest)
	}
	if _, err := index.ImageIndex(digest); err != nil {
		t.Error(err)
	}
}

func TestKrewFindsTheCommandLine(t *testing.T) {
	o, _ := commonRelease(t)
	var plugin struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, o.Folder, "krew.yaml")), &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.Metadata.Name != "regatta" || plugin.Spec.Version != "v0.2.0" || len(plugin.Spec.Platforms) != len(o.Systems) {
		t.Fatalf("got %+v", plugin)
	}
	for i, p := range plugin.Spec.Platforms {
		file, ok := strings.CutPrefix(p.URI, "https://github.com/regatta-sh/regatta/releases/download/v0.2.0/")
		content := read(t, o.Folder, file)
		if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(content))); !ok || sum != p.SHA256 {
			t.Errorf("%s has checksum %s", p.URI, sum)
		}
		if got, want := p.Selector.MatchLabels["os"]+"/"+p.Selector.MatchLabels["arch"], o.Systems[i].String(); got != want {
			t.Errorf("it is for %s, want %s", got, want)
		}
		packed := unpack(t, file, content)
		if len(packed[p.Bin]) == 0 || len(packed["LICENSE"]) == 0 {
			t.Errorf("%s has no %s, or no licence", file, p.Bin)
		}
		if has, isWindows := packed["kubectl_complete-regatta"] != "", o.Systems[i].OS == "windows"; has == isWindows {
			t.Errorf("%s has the script that completes words: %t", file, has)
		}
	}
}

// unpack reads an archive of the command line.
func unpack(t *testing.T, file, content string) map[string]string {
	t.Helper()
	if strings.HasSuffix(file, ".tar.gz") {
		return archivetest.ReadTarGz(t, strings.NewReader(content))
	}
	archive, err := zip.NewReader(bytes.NewReader([]byte(content)), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range archive.File {
		opened, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(opened)
		if err != nil {
			t.Fatal(err)
		}
		out[entry.Name] = string(raw)
	}
	return out
}

// newRegistry is an empty registry on this machine.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestHelmInstallsFromWhatWasPushed(t *testing.T) {
	o, release := commonRelease(t)
	host := newRegistry(t)
	if err := assets.CheckRegistry(host+"/", authn.DefaultKeychain); err != nil {
		t.Fatal(err)
	}
	for range 2 { // one that failed halfway is pushed again
		if err := release.PushRelease(t.Context(), host, o.Report); err != nil {
			t.Fatal(err)
		}
	}
	rendered, err := install.Helm(t, "", "template", "kruise", "oci://"+host+"/regatta-sh/charts/kruise", "--version", "0.2.0", "--kube-version", "1.36.0", "--plain-http", "--set", "image.registry="+host)
	if err != nil {
		t.Fatal(err, rendered)
	}
	digest, err := release.Image.Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if want := host + "/regatta-sh/regatta@" + digest.String(); !strings.Contains(rendered, want) {
		t.Errorf("no image is %s", want)
	}
	said, err := install.Helm(t, "", "show", "chart", "oci://"+host+"/regatta-sh/charts/kruise", "--version", "0.2.0", "--plain-http")
	if err != nil || !strings.Contains(said, "regatta.sh/image-digest: "+digest.String()) {
		t.Errorf("the chart says %s: %v", said, err)
	}

	another, err := random.Index(16, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	err = (&assets.Release{Version: "v0.2.0", Image: &image.Built{Index: another}, Chart: release.Chart}).PushRelease(t.Context(), host, o.Report)
	if err == nil || !strings.Contains(err.Error(), "regatta-sh/regatta:0.2.0 is there already, with digest "+digest.String()) {
		t.Errorf("another image of the same version: %v", err)
	}
}

func TestHelmInstallsFromTheIndex(t *testing.T) {
	o, _ := commonRelease(t)
	server := httptest.NewServer(http.FileServer(http.Dir(o.Folder)))
	defer server.Close()
	rendered, err := install.Helm(t, "", "template", "kruise", "kruise", "--repo", server.URL, "--version", "0.2.0", "--kube-version", "1.36.0")
	if err != nil {
		t.Fatal(err, rendered)
	}
	if want := strings.TrimSpace(read(t, o.Folder, "image.digest")); !strings.Contains(rendered, want) {
		t.Errorf("no image is %s", want)
	}
}

func TestAFolderIsWrittenWholeOrNotAtAll(t *testing.T) {
	o := options(t, t.TempDir())
	writeSources(t, o.Source)
	o.Helm = filepath.Join(t.TempDir(), "no-helm")
	if _, err := assets.WriteRelease(t.Context(), o); err == nil || !strings.Contains(err.Error(), "rendering the chart") {
		t.Errorf("without Helm: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(o.Folder)); err != nil || len(left) > 0 {
		t.Errorf("it left %v: %v", left, err)
	}
	write(t, filepath.Join(o.Folder, "mine.txt"), "")
	if _, err := assets.WriteRelease(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is not empty: it has mine.txt") {
		t.Errorf("a folder with a file: %v", err)
	}
}
