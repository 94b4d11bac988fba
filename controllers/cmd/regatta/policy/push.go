// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/keys"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/artifact"
)

func (c *commands) newPushCommand() *cobra.Command {
	var insecure bool
	cmd := &cobra.Command{
		Use:   "push BUNDLE REFERENCE",
		Short: "Put a bundle into a registry",
		Long: `Push puts an archive into a registry, where regatta, opa and oras find it, and
prints the reference with its digest, which is what a cluster should be told: a tag
can be moved. Credentials are those of docker login.`,
		Example: `  regatta policy push bundle.tar.gz registry.example/shop/change-freeze:v1`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readArchive(args[0])
			if err != nil {
				return err
			}
			pinned, err := newRegistry(insecure).Push(cmd.Context(), args[1], text)
			if err != nil {
				return wrapReferenceError(wrapRefusal(err))
			}
			fmt.Fprintln(cmd.OutOrStdout(), pinned)
			return nil
		},
	}
	cmd.Flags().BoolVar(&insecure, "insecure", false, "the registry may be one without TLS")
	return cmd
}

func (c *commands) newPullCommand() *cobra.Command {
	var insecure bool
	var output string
	var t keys.Trust
	cmd := &cobra.Command{
		Use:   "pull REFERENCE",
		Short: "Get a bundle from a registry",
		Long: `Pull writes the archive that a registry has, and prints the reference with its
digest. With a key the signature is verified first, and nothing is written if it
is not good.`,
		Example: `  regatta policy pull registry.example/shop/change-freeze:v1 -o pulled.tar.gz --verification-key key.pub`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := t.NewVerification()
			if err != nil {
				return err
			}
			text, pinned, err := newRegistry(insecure).PullArchive(cmd.Context(), args[0])
			if err != nil {
				return wrapReferenceError(err)
			}
			if _, err := bundle.FromArchive(pinned, bytes.NewReader(text), by); err != nil {
				return wrapRefusal(err)
			}
			if err := writeArchive(cmd, output, text); err != nil {
				return err
			}
			fmt.Fprintln(messageWriter(cmd, output), pinned)
			return nil
		},
	}
	cmd.Flags().BoolVar(&insecure, "insecure", false, "the registry may be one without TLS")
	cmd.Flags().StringVarP(&output, "output", "o", archiveName, "the archive to write; - is the standard output")
	t.AddFlags(cmd.Flags(), "the bundle")
	return cmd
}

func newRegistry(insecure bool) *artifact.Registry {
	if insecure {
		return artifact.New(artifact.WithHTTP())
	}
	return artifact.New()
}

// wrapReferenceError turns the error of an invalid reference into a usage error.
func wrapReferenceError(err error) error {
	var reference artifact.ReferenceError
	if errors.As(err, &reference) {
		return exit.UsageError(err)
	}
	return err
}
