// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"archive/tar"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/regatta-sh/regatta/charts/release/archive/archivetest"
	"github.com/regatta-sh/regatta/charts/release/image"
)

// origin is that of all builds of these tests.
func origin() image.Origin {
	return image.Origin{Version: "v0.2.0", Revision: strings.Repeat("a", 40), Created: time.Unix(1_700_000_000, 0)}
}

// writeModule writes a module with two small programs, and returns its folder.
func writeModule(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for file, text := range map[string]string{
		"go.mod": "module example.test/small\n\ngo 1.26.0\n",
		"a/a.go": "package main\n\nimport \"runtime\"\n\nfunc main() { _, file, _, _ := runtime.Caller(0); println(file) }\n",
		"b/b.go": "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// build builds the image of those programs for platforms.
func build(t *testing.T, platforms string) *image.Built {
	t.Helper()
	parsed, err := image.ParsePlatforms(platforms)
	if err != nil {
		t.Fatal(err)
	}
	built, err := image.Build(t.Context(), writeModule(t), []image.Program{{Name: "a", Package: "./a"}, {Name: "b", Package: "./b"}}, parsed, origin(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func digestOf(t *testing.T, of interface{ Digest() (v1.Hash, error) }) v1.Hash {
	t.Helper()
	digest, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// Two folders represent two machines: what a build takes from where it runs is in the paths.
func TestTwoBuildsMakeOneImage(t *testing.T) {
	one, other := build(t, "linux/amd64,linux/arm64"), build(t, "linux/amd64,linux/arm64")
	if a, b := digestOf(t, one.Index), digestOf(t, other.Index); a != b {
		t.Errorf("the same sources make the images %s and %s", a, b)
	}
	for i := range one.Platforms {
		if string(one.Platforms[i].SBOM) != string(other.Platforms[i].SBOM) {
			t.Errorf("the SBOMs for %s differ", one.Platforms[i].String())
		}
	}
}

func TestAnImageHasWhatItsProgramsNeedAndNoShell(t *testing.T) {
	built := build(t, "linux/amd64,linux/arm64")
	for _, p := range built.Platforms {
		config, err := p.Image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if got := fmt.Sprint(config.OS, "/", config.Architecture, " ", c.Entrypoint, " ", c.User); got != p.String()+" [/a] 65532:65532" {
			t.Errorf("it is for, runs and runs as %s", got)
		}
		if !config.Created.Equal(origin().Created) || c.Labels["org.opencontainers.image.version"] != "v0.2.0" || c.Labels["org.opencontainers.image.revision"] != origin().Revision {
			t.Errorf("it was created at %s, with labels %v", config.Created, c.Labels)
		}
		files := readFiles(t, p.Image)
		for _, path := range []string{"a", "b", "etc/passwd", "usr/share/zoneinfo/Asia/Shanghai"} {
			if len(files[path]) == 0 {
				t.Errorf("it has no %s", path)
			}
		}
		for path := range files {
			if base := filepath.Base(path); base == "sh" || base == "bash" || base == "busybox" {
				t.Errorf("it has a shell: %s", path)
			}
		}
		if _, err := time.LoadLocationFromTZData("Asia/Shanghai", files["usr/share/zoneinfo/Asia/Shanghai"]); err != nil {
			t.Error(err)
		}
		if roots := x509.NewCertPool(); !roots.AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]) {
			t.Error("it has no root certificates")
		}
	}
}

// readFiles reads the files of an image, by path.
func readFiles(t *testing.T, of v1.Image) map[string][]byte {
	t.Helper()
	layers, err := of.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, l := range layers {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		archivetest.EachFile(t, content, func(header *tar.Header, text string) { files[header.Name] = []byte(text) })
		if err := content.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestARegistryHasTheImageAndWhatRefersToIt(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true)))
	defer server.Close()
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/mirror/regatta:v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	built := build(t, "linux/amd64,linux/arm64")
	digest, err := built.Push(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if got := digestOf(t, index); got != digest || got != digestOf(t, built.Index) {
		t.Errorf("the tag has %s, want %s", got, digest)
	}
	for _, p := range built.Platforms {
		pulled, err := remote.Image(tag, remote.WithPlatform(p.Platform))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := digestOf(t, pulled), digestOf(t, p.Image); got != want {
			t.Errorf("for %s it has %s, want %s", p.String(), got, want)
		}
		sbom := readReferrer(t, tag.Context().Digest(digestOf(t, p.Image).String()), string(image.SBOMType))
		if !strings.Contains(sbom, `"spdxVersion": "SPDX-2.3"`) || !strings.Contains(sbom, `"pkg:golang/stdlib@1.`) {
			t.Errorf("the SBOM for %s is %s", p.String(), sbom)
		}
	}
	var statement struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
	}
	if err := json.Unmarshal([]byte(readReferrer(t, tag.Context().Digest(digest.String()), string(image.ProvenanceType))), &statement); err != nil {
		t.Fatal(err)
	}
	if s := statement.Subject; len(s) != 1 || s[0].Name != tag.Context().Name() || s[0].Digest["sha256"] != digest.Hex {
		t.Errorf("the provenance is of %v", s)
	}
}

// readReferrer reads the document of a type that refers to an image.
func readReferrer(t *testing.T, of name.Digest, kind string) string {
	t.Helper()
	referrers, err := remote.Referrers(of)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		if m.ArtifactType != kind {
			continue
		}
		artifact, err := remote.Image(of.Context().Digest(m.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		layers, err := artifact.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("the artifact has the layers %v: %v", layers, err)
		}
		content, err := layers[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		raw, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	t.Fatalf("nothing of type %s refers to %s: %v", kind, of, manifest.Manifests)
	return ""
}

func TestAnArchiveHasTheImageByItsName(t *testing.T) {
	tag, err := name.NewTag("registry.example/kruise-manager:dev")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := build(t, "linux/amd64,linux/arm64").WriteArchive(file, tag); err == nil || !strings.Contains(err.Error(), "one platform") {
		t.Errorf("an archive for two platforms: %v", err)
	}
	built := build(t, "linux/arm64")
	if err := built.WriteArchive(file, tag); err != nil {
		t.Fatal(err)
	}
	loaded, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	got, err := loaded.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := built.Platforms[0].Image.ConfigName(); err != nil || got != want {
		t.Errorf("the archive has image ID %s, want %s: %v", got, want, err)
	}
	if err := built.WriteArchive(filepath.Join(t.TempDir(), "none", "image.tar"), tag); err == nil {
		t.Error("a folder that is not there is no error")
	}
}

func TestPlatformsAreRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		"": `platform ""`, "darwin/arm64": "want linux", "linux": "want linux", "linux/arm/v7": "want linux", "linux/amd64,linux/amd64": "twice",
		"linux/amd64,": `platform ""`, "a/b/c/d": "a/b/c/d",
	} {
		if got, err := image.ParsePlatforms(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want an error with %q", text, got, err, want)
		}
	}
}

func TestAProgramThatDoesNotCompileIsNamed(t *testing.T) {
	_, err := image.Build(t.Context(), writeModule(t), []image.Program{{Name: "c", Package: "./c"}}, []v1.Platform{{OS: "linux", Architecture: "amd64"}}, origin(), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "building ./c for linux/amd64") {
		t.Errorf("got %v", err)
	}
}
