// SPDX-License-Identifier: Apache-2.0

// Command release makes what users install Regatta from.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/charts/release/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "release", Short: "Make what users install Regatta from", SilenceUsage: true}
	cmd.AddCommand(newImageCommand(), newReleaseCommand())
	return cmd
}

// imageFlags are the flags of the image command.
type imageFlags struct {
	image, platforms, archive, source string
	push                              bool
}

func newImageCommand() *cobra.Command {
	f := imageFlags{}
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build the image of the manager, the node agent and the command line, without a container engine",
		Long: `Build the image of the manager, the node agent and the command line, without a container engine.

It is printed by its digest, which is the same for each build of a commit. --push writes it to its registry, with the
login of "docker login"; --archive writes it to a file for clusters on this machine.`,
		Example: `  release image --image registry.example/kruise-manager:v0.2.0 --push
  release image --image kruise-manager:dev --archive image.tar`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return buildImage(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.image, "image", "", "the name of the image, with its registry and tag (required)")
	flags.StringVar(&f.platforms, "platforms", "linux/"+runtime.GOARCH, "what it is built for, separated by commas")
	flags.StringVar(&f.archive, "archive", "", "a file to write it to, for docker load and its like")
	flags.StringVar(&f.source, "source", ".", "the folder of the sources")
	flags.BoolVar(&f.push, "push", false, "push it to its registry")
	return cmd
}

func buildImage(cmd *cobra.Command, f imageFlags) error {
	ctx := cmd.Context()
	if f.image == "" {
		return errors.New("--image: the name of the image is missing, such as registry.example/kruise-manager:v0.2.0")
	}
	tag, err := name.NewTag(f.image)
	if err != nil {
		return fmt.Errorf("--image: %w", err)
	}
	platforms, err := image.ParsePlatforms(f.platforms)
	if err != nil {
		return fmt.Errorf("--platforms: %w", err)
	}
	if f.archive != "" && len(platforms) > 1 {
		return fmt.Errorf("--archive: an archive has an image of one platform, and --platforms names %d", len(platforms))
	}
	origin, err := image.FindOrigin(ctx, f.source)
	if err != nil {
		return err
	}
	report := func(step string) { fmt.Fprintln(cmd.ErrOrStderr(), step) }
	built, err := image.Build(ctx, f.source, image.ReleasePrograms(), platforms, origin, report)
	if err != nil {
		return err
	}
	if f.archive != "" {
		report("Writing " + f.archive)
		if err := built.WriteArchive(f.archive, tag); err != nil {
			return fmt.Errorf("--archive: %w", err)
		}
	}
	if f.push {
		report("Pushing " + tag.String())
		if _, err := built.Push(ctx, tag, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("--push: %w", err)
		}
	}
	digest, err := built.Index.Digest()
	if err != nil {
		return fmt.Errorf("finding the digest of the image: %w", err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s@%s\n", strings.TrimSuffix(f.image, ":"+tag.TagStr()), digest)
	return err
}
