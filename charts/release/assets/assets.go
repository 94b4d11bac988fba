// SPDX-License-Identifier: Apache-2.0

// Package assets makes all that users install a release from, in one folder: the image, the chart that is pinned to it, manifests for kubectl,
// the command line for several systems, and what tells what they are made of. The same commit makes the same folder, to the last byte.
package assets

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/regatta-sh/regatta/charts/release/helmchart"
	"github.com/regatta-sh/regatta/charts/release/image"
)

// DefaultRegistry is where the chart looks for its image unless values name another one.
const DefaultRegistry = "ghcr.io"

// Where a registry has the image and the chart.
const (
	imageRepository = "regatta-sh/regatta"
	chartRepository = "regatta-sh/charts/kruise"
)

// Options say what a release is made of.
type Options struct {
	// Source is the folder of the sources, and Origin what they are.
	Source string
	Origin image.Origin
	// Version is such as v0.2.0.
	Version string
	// Notes are the news of the version, in Markdown.
	Notes string
	// Folder is what is written. It is made whole, or not at all.
	Folder string
	// Platforms are those of the image, and Systems those that the command line is built for.
	Platforms, Systems []v1.Platform
	// Programs are those of the image, and CommandLine is what users run.
	Programs    []image.Program
	CommandLine image.Program
	// Compile builds programs; image.Compile does if it is nil.
	Compile image.Compiler
	// Helm is the program that renders manifests.
	Helm string
	// Report is called for each step.
	Report func(string)
}

// CommandLineSystems are those that the command line is built for.
func CommandLineSystems() []v1.Platform {
	var out []v1.Platform
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, processor := range []string{"amd64", "arm64"} {
			out = append(out, v1.Platform{OS: system, Architecture: processor})
		}
	}
	return out
}

// Release is what was made.
type Release struct {
	Version string
	Image   *image.Built
	Chart   *helmchart.Package
}

// bareVersion is a version as charts and tags of images have it, without a v.
func bareVersion(version string) string { return strings.TrimPrefix(version, "v") }

// WriteRelease makes the folder of a release.
func WriteRelease(ctx context.Context, o Options) (release *Release, err error) {
	if o.Compile == nil {
		o.Compile = image.CompilePrograms
	}
	o.Origin.Version = o.Version
	if err := CheckFolder(o.Folder); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of the release: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the release: %w", err)
	}
	partly, err := os.MkdirTemp(filepath.Dir(folder), ".release-")
	if err != nil {
		return nil, fmt.Errorf("making the folder of the release: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partly)) }() // it has gone if all went well
	w := &writer{Options: o, into: partly, release: &Release{Version: o.Version}}
	for _, step := range []func(context.Context) error{w.addImage, w.addChart, w.addManifests, w.addPrograms, w.addNotes, w.addChecksums} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("writing the folder of the release: %w", err)
	}
	if err := os.Chmod(partly, 0o755); err != nil {
		return nil, fmt.Errorf("writing the folder of the release: %w", err)
	}
	if err := os.Rename(partly, folder); err != nil {
		return nil, fmt.Errorf("writing the folder of the release: %w", err)
	}
	return w.release, nil
}

// CheckFolder refuses a folder that has something in it.
func CheckFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading the folder of the release: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("the folder %s is not empty: it has %s; remove it, or name another one", folder, entries[0].Name())
	}
	return nil
}

// writer writes a release step by step.
type writer struct {
	Options
	into    string
	release *Release
}

// addFile writes a file of the release.
func (w *writer) addFile(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(w.into, name), content, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

func (w *writer) addNotes(context.Context) error { return w.addFile("NOTES.md", []byte(w.Notes)) }

// addChecksums writes the checksums of all files of the release, as sha256sum --check reads them.
func (w *writer) addChecksums(context.Context) error {
	entries, err := os.ReadDir(w.into) // by name
	if err != nil {
		return fmt.Errorf("reading the folder of the release: %w", err)
	}
	var out strings.Builder
	for _, entry := range entries {
		sum, err := hashFile(filepath.Join(w.into, entry.Name()))
		if err != nil {
			return fmt.Errorf("hashing %s: %w", entry.Name(), err)
		}
		fmt.Fprintf(&out, "%x  %s\n", sum, entry.Name())
	}
	return w.addFile("SHA256SUMS", []byte(out.String()))
}

func hashFile(file string) ([]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, opened); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}
