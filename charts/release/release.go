// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/charts/release/assets"
	"github.com/regatta-sh/regatta/charts/release/image"
)

// releaseFlags are the flags of the release command.
type releaseFlags struct {
	version, folder, registry, platforms, helm, source string
	push                                               bool
}

func newReleaseCommand() *cobra.Command {
	f := releaseFlags{}
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Make all that users install a release from, in one folder",
		Long: `Make all that users install a release from, in one folder: the image, the chart that is pinned to it with an index for
helm repo add, manifests for kubectl, the command line for Linux, macOS and Windows with a manifest for Krew, SBOMs, the notes of the
changelog and checksums. The same commit makes the same folder.

--push writes the image and the chart to a registry too, with the login of "docker login".`,
		Example: `  release release --version v0.2.0
  release release --version v0.2.0 --push --registry localhost:5000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return makeRelease(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.version, "version", "", "the version, such as v0.2.0 (required)")
	flags.StringVar(&f.folder, "folder", "dist", "the folder to write, which is not there or empty")
	flags.BoolVar(&f.push, "push", false, "push the image and the chart")
	flags.StringVar(&f.registry, "registry", assets.DefaultRegistry, "where to push them")
	flags.StringVar(&f.platforms, "platforms", "linux/amd64,linux/arm64", "what the image is built for, separated by commas")
	flags.StringVar(&f.helm, "helm", "", "the program helm; that of the local cluster if empty")
	flags.StringVar(&f.source, "source", ".", "the folder of the sources")
	return cmd
}

func makeRelease(cmd *cobra.Command, f releaseFlags) error {
	ctx := cmd.Context()
	if err := assets.CheckVersion(f.version); err != nil {
		return fmt.Errorf("--version: %w", err)
	}
	platforms, err := image.ParsePlatforms(f.platforms)
	if err != nil {
		return fmt.Errorf("--platforms: %w", err)
	}
	if err := assets.CheckFolder(f.folder); err != nil {
		return fmt.Errorf("--folder: %w", err)
	}
	origin, err := assets.CheckSources(ctx, f.source, f.version, f.push)
	if err != nil {
		return err
	}
	notes, err := assets.ReadNotes(f.source, f.version)
	if err != nil {
		return err
	}
	if err := assets.CheckDocuments(ctx, f.source, f.version); err != nil {
		return err
	}
	if f.push {
		if err := assets.CheckRegistry(f.registry, authn.DefaultKeychain); err != nil {
			return fmt.Errorf("--registry: %w", err)
		}
	}
	if f.helm == "" {
		if f.helm, err = buildHelm(ctx, f.source, cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	report := func(step string) { fmt.Fprintln(cmd.ErrOrStderr(), step) }
	release, err := assets.WriteRelease(ctx, assets.Options{
		Source: f.source, Origin: origin, Version: f.version, Notes: notes, Folder: f.folder, Platforms: platforms, Systems: assets.CommandLineSystems(),
		Programs: image.ReleasePrograms(), CommandLine: image.CommandLine(), Helm: f.helm, Report: report,
	})
	if err != nil {
		return err
	}
	if f.push {
		if err := release.PushRelease(ctx, f.registry, report, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("--push: %w", err)
		}
	}
	for _, file := range []string{"image.digest", "chart.digest"} {
		text, err := os.ReadFile(filepath.Join(f.folder, file))
		if err != nil {
			return fmt.Errorf("reading what was written: %w", err)
		}
		if _, err := cmd.OutOrStdout().Write(text); err != nil {
			return err
		}
	}
	return nil
}

// buildHelm builds the Helm that the sources are tested with, and returns its path.
func buildHelm(ctx context.Context, source string, progress io.Writer) (string, error) {
	command := exec.CommandContext(ctx, "go", "run", "./test/cluster", "bin", "helm")
	command.Dir, command.Stderr = source, progress
	folder, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("building helm: %w", err)
	}
	return filepath.Join(string(bytes.TrimSpace(folder)), "helm"), nil
}
