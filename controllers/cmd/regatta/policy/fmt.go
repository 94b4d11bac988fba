// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/module"
)

var errUnformatted = errors.New("some files are not formatted; regatta policy fmt -w formats them")

func (c *commands) newFmtCommand() *cobra.Command {
	var write, check bool
	cmd := &cobra.Command{
		Use:   "fmt PATH...",
		Short: "Format policies as OPA does",
		Long: `Fmt prints the .rego files of folders as opa fmt would write them; -w writes them
and prints the names of those that changed. --check changes nothing, prints the
names of those that would, and ends with 1 if there are any. - is the standard
input, as editors use it.`,
		Example: `  regatta policy fmt -w change-freeze
  regatta policy fmt --check policies/
  regatta policy fmt - < change-freeze.rego`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			files, err := regoFiles(paths)
			if err != nil {
				return err
			}
			changed := false
			for _, file := range files {
				var before []byte
				if file == stdin {
					before, err = io.ReadAll(cmd.InOrStdin())
				} else {
					before, err = os.ReadFile(file)
				}
				if err != nil {
					return fmt.Errorf("reading policy: %w", err)
				}
				after, err := formatPolicy(file, before)
				if err != nil {
					return exit.RefusalError(err)
				}
				differs := !bytes.Equal(before, after)
				changed = changed || differs
				switch {
				case differs && write && file != stdin:
					if err := os.WriteFile(file, after, 0o644); err != nil {
						return fmt.Errorf("writing policy: %w", err)
					}
					fallthrough
				case differs && check:
					fmt.Fprintln(cmd.OutOrStdout(), file)
				case !write && !check || file == stdin && !check:
					if _, err := cmd.OutOrStdout().Write(after); err != nil {
						return fmt.Errorf("printing: %w", err)
					}
				}
			}
			if check && changed {
				return exit.RefusalError(errUnformatted)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the files")
	cmd.Flags().BoolVar(&check, "check", false, "only say which files are not formatted")
	cmd.MarkFlagsMutuallyExclusive("write", "check")
	return cmd
}

// formatPolicy formats as Rego v1, in which `not` of v2 is an import, so that other tools can read the
// result. A module that is valid only in v2 is formatted as v2.
func formatPolicy(file string, text []byte) ([]byte, error) {
	version := ast.RegoV1
	if _, err := ast.ParseModuleWithOpts(file, string(text), ast.ParserOptions{RegoVersion: version}); err != nil {
		version = ast.RegoV2
	}
	out, err := format.SourceWithOpts(file, text, format.Opts{
		RegoVersion:   version,
		ParserOptions: &ast.ParserOptions{RegoVersion: version},
		Capabilities:  ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(version)),
	})
	if err != nil {
		return nil, fmt.Errorf("formatting: %w", module.FromErrors(err))
	}
	return out, nil
}

// regoFiles finds Rego files in folders; a path of a file is taken as a Rego file.
func regoFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		if path == stdin {
			files = append(files, path)
			continue
		}
		err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (p == path || filepath.Ext(p) == ".rego") {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("looking for policies: %w", err)
		}
	}
	return files, nil
}
