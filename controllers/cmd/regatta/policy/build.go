// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// archiveName is the default path of an archive, as with opa.
const archiveName = "bundle.tar.gz"

func (c *commands) newBuildCommand() *cobra.Command {
	var output string
	var sequence int64
	var how bundle.Build
	cmd := &cobra.Command{
		Use:   "build PATH",
		Short: "Pack a bundle as OPA does",
		Long: `Build packs policies and data of a folder as an archive in OPA's bundle format,
with a manifest. The same files make the same bytes, on every machine and at any time.

Tests are left out, unless --with-tests is given: a cluster then runs them before
the bundle becomes active. A file .manifest in the folder is taken as it is but
for what flags say.`,
		Example: `  regatta policy build change-freeze --revision v1 --sequence 7
  regatta policy build change-freeze -o - | tar tzf -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := loadBundle(args[0], nil)
			if err != nil {
				return wrapRefusal(prefixProblemPaths(args[0], err))
			}
			if len(b.Modules) == 0 {
				return exit.RefusalError(fmt.Errorf("%s has no policy: no file that ends with .rego but is no test", args[0]))
			}
			if cmd.Flags().Changed("sequence") {
				how.Sequence = &sequence
			}
			if sequence < 0 {
				return exit.UsageError(errors.New("--sequence is a number of at least 0"))
			}
			var out bytes.Buffer
			if err := b.BuildArchive(&out, how); err != nil {
				return wrapRefusal(err)
			}
			return writeArchive(cmd, output, out.Bytes())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", archiveName, "the archive to write; - is the standard output")
	cmd.Flags().StringVarP(&how.Revision, "revision", "r", "", "revision for people to read; a hash of the content if there is none")
	cmd.Flags().Int64Var(&sequence, "sequence", 0, "a number that grows: a cluster takes no bundle with a lower one than it has")
	cmd.Flags().BoolVar(&how.Tests, "with-tests", false, "pack tests too")
	return cmd
}

// writeArchive writes an archive into a file and prints a summary of it.
func writeArchive(cmd *cobra.Command, path string, text []byte) error {
	out := messageWriter(cmd, path)
	if path == stdout {
		if _, err := cmd.OutOrStdout().Write(text); err != nil {
			return fmt.Errorf("printing the bundle: %w", err)
		}
	} else if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	b, err := bundle.FromArchive(path, bytes.NewReader(text), nil)
	if err != nil {
		return err
	}
	s := b.SummarizeContent()
	if path == stdout {
		path = "written"
	}
	fmt.Fprintf(out, "%s: revision %s, %s, %s, sha256:%x\n", path, s.Revision, formatCount(len(s.Files), "file"), formatCount(len(text), "byte"), sha256.Sum256(text))
	return nil
}

// stdout and stdin are the file name that means the standard output or input.
const stdout, stdin = "-", "-"

// messageWriter is where to report what was written to a path: not the standard output if the archive
// itself is written there.
func messageWriter(cmd *cobra.Command, path string) io.Writer {
	if path == stdout {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}
