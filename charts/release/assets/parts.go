// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	_ "embed" // for the script of kubectl
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/charts/release/archive"
	"github.com/regatta-sh/regatta/charts/release/helmchart"
	"github.com/regatta-sh/regatta/charts/release/image"
)

// addImage builds the image, and writes it with what is known of it.
func (w *writer) addImage(ctx context.Context) error {
	built, err := image.BuildWith(ctx, w.Compile, w.Source, w.Programs, w.Platforms, w.Origin, w.Report)
	if err != nil {
		return err
	}
	w.release.Image = built
	named := path.Join(DefaultRegistry, imageRepository)
	digest, err := built.Index.Digest()
	if err != nil {
		return fmt.Errorf("finding the digest of the image: %w", err)
	}
	if err := w.addFile("image.digest", []byte(named+"@"+digest.String()+"\n")); err != nil {
		return err
	}
	for _, p := range built.Platforms {
		if err := w.addFile(fmt.Sprintf("regatta-image-%s-%s-%s.spdx.json", w.Version, p.OS, p.Architecture), p.SBOM); err != nil {
			return err
		}
	}
	provenance, err := built.BuildProvenance(named)
	if err != nil {
		return err
	}
	if err := w.addFile(fmt.Sprintf("regatta-image-%s.provenance.json", w.Version), provenance); err != nil {
		return err
	}
	return w.addImageArchive(built, named+":"+bareVersion(w.Version))
}

// addImageArchive writes the image for all platforms as an archive with the layout of OCI, which registries' clients, containerd and
// Docker read. It is named in it, for those that load it.
func (w *writer) addImageArchive(built *image.Built, name string) (err error) {
	folder, err := os.MkdirTemp("", "regatta-layout-")
	if err != nil {
		return fmt.Errorf("making a folder for the image: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	to, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	annotations := map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": bareVersion(w.Version)}
	if err := to.AppendIndex(built.Index, layout.WithAnnotations(annotations)); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	file, err := os.Create(filepath.Join(w.into, fmt.Sprintf("regatta-image-%s.oci.tar", w.Version)))
	if err != nil {
		return fmt.Errorf("writing the archive of the image: %w", err)
	}
	if err := errors.Join(packFolder(file, folder, w.Origin.Created), file.Close()); err != nil {
		return fmt.Errorf("writing the archive of the image: %w", err)
	}
	return nil
}

// packFolder writes the files of a folder as a tar archive, by their paths.
func packFolder(to io.Writer, folder string, at time.Time) error {
	out := tar.NewWriter(to)
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		opened, err := os.Open(file)
		if err != nil {
			return err
		}
		defer opened.Close()
		info, err := opened.Stat()
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(relative), Mode: 0o644, Size: info.Size(), ModTime: at.UTC(), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err = io.Copy(out, opened)
		return err
	})
	return errors.Join(err, out.Close())
}

// addChart packs the chart, pinned to the image, with the index of a repository of charts.
func (w *writer) addChart(context.Context) error {
	digest, err := w.release.Image.Index.Digest()
	if err != nil {
		return fmt.Errorf("finding the digest of the image: %w", err)
	}
	licence, err := w.readLicence()
	if err != nil {
		return err
	}
	chart, err := helmchart.PackChart(filepath.Join(w.Source, chartFolder), bareVersion(w.Version), digest, licence, w.Origin.Created)
	if err != nil {
		return err
	}
	w.release.Chart = chart
	index, err := chart.WriteIndex()
	if err != nil {
		return err
	}
	artifact, err := chart.BuildArtifact()
	if err != nil {
		return err
	}
	if digest, err = artifact.Digest(); err != nil {
		return fmt.Errorf("finding the digest of the chart: %w", err)
	}
	return errors.Join(
		w.addFile(chart.FileName(), chart.Content),
		w.addFile("index.yaml", index),
		w.addFile("chart.digest", []byte(path.Join(DefaultRegistry, chartRepository)+"@"+digest.String()+"\n")),
	)
}

func (w *writer) readLicence() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(w.Source, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("reading the licence: %w", err)
	}
	return text, nil
}

// addPrograms writes the command line for each system, its SBOM, and the manifest that has kubectl run it as a plugin.
func (w *writer) addPrograms(ctx context.Context) error {
	plugin := newPlugin(w.Version)
	for _, system := range w.Systems {
		w.Report(fmt.Sprintf("Compiling the command line for %s", system.String()))
		file, content, err := w.packProgram(ctx, system)
		if err != nil {
			return err
		}
		if err := w.addFile(file, content); err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, pluginPlatform{
			Selector: pluginSelector{MatchLabels: map[string]string{"os": system.OS, "arch": system.Architecture}},
			URI:      fmt.Sprintf("%s/releases/download/%s/%s", image.Sources, w.Version, file), SHA256: hex.EncodeToString(sum[:]), Bin: fileOf(w.CommandLine.Name, system),
		})
	}
	manifest, err := yaml.Marshal(plugin)
	if err != nil {
		return fmt.Errorf("writing the manifest of the plugin: %w", err)
	}
	return w.addFile("krew.yaml", manifest)
}

// fileOf is the file of a program for a system.
func fileOf(program string, system v1.Platform) string {
	if system.OS == "windows" {
		return program + ".exe"
	}
	return program
}

// kubectlCompletion is the script that kubectl runs to complete "kubectl regatta". Windows cannot run it.
//
//go:embed kubectl_complete-regatta
var kubectlCompletion []byte

// packProgram compiles the command line for a system, and packs it as users of the system expect it. Its SBOM is written beside.
func (w *writer) packProgram(ctx context.Context, system v1.Platform) (file string, content []byte, err error) {
	folder, err := os.MkdirTemp("", "regatta-program-")
	if err != nil {
		return "", nil, fmt.Errorf("making a folder for the program: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	program := image.Program{Name: fileOf(w.CommandLine.Name, system), Package: w.CommandLine.Package}
	paths, err := w.Compile(ctx, w.Source, []image.Program{program}, system, w.Version, folder)
	if err != nil {
		return "", nil, err
	}
	document, err := image.DescribePrograms(paths, w.Origin)
	if err != nil {
		return "", nil, err
	}
	name := fmt.Sprintf("%s-%s-%s-%s", w.CommandLine.Name, w.Version, system.OS, system.Architecture)
	if err := w.addFile(name+".spdx.json", document); err != nil {
		return "", nil, err
	}
	compiled, err := os.ReadFile(paths[0])
	if err != nil {
		return "", nil, fmt.Errorf("reading the program: %w", err)
	}
	licence, err := w.readLicence()
	if err != nil {
		return "", nil, err
	}
	files := []archive.File{{Path: program.Name, Mode: 0o755, Content: compiled}, {Path: "LICENSE", Mode: 0o644, Content: licence}}
	if system.OS == "windows" {
		content, err = archive.PackZip(files, w.Origin.Created)
		return name + ".zip", content, err
	}
	files = append(files, archive.File{Path: "kubectl_complete-regatta", Mode: 0o755, Content: kubectlCompletion})
	content, err = archive.PackTarGz(files, w.Origin.Created)
	return name + ".tar.gz", content, err
}

// The manifest of a plugin of kubectl, as Krew reads it.
type (
	plugin struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       pluginSpec        `json:"spec"`
	}
	pluginSpec struct {
		Version          string           `json:"version"`
		Homepage         string           `json:"homepage"`
		ShortDescription string           `json:"shortDescription"`
		Description      string           `json:"description"`
		Platforms        []pluginPlatform `json:"platforms"`
	}
	pluginPlatform struct {
		Selector pluginSelector `json:"selector"`
		URI      string         `json:"uri"`
		SHA256   string         `json:"sha256"`
		Bin      string         `json:"bin"`
	}
	pluginSelector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	}
)

func newPlugin(version string) plugin {
	return plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "regatta"},
		Spec: pluginSpec{
			Version: version, Homepage: image.Sources, ShortDescription: "Ask why workloads wait, and ship policies",
			Description: "Asks the manager of Regatta why a workload or a pod waits, drives rollouts,\nand tests, simulates, replays and ships the Rego policies that decide them.\n",
		},
	}
}
