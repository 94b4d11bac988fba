// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/bundle/scaffold"
)

func (c *commands) newScaffoldCommand() *cobra.Command {
	var domain, rule, dir string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Start a policy",
		Long: `New makes a folder with a policy that works, its metadata, a test, a case and a
README, to be edited: a hold or a rank of rollouts, or a denial, a guard or an
exemption of protection. It overwrites nothing.`,
		Example: `  regatta policy new change-freeze --domain rollout --rule hold
  regatta policy new no-deletes-at-night --rule deny --dir policies`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := scaffold.FindKind(domain, rule)
			if err != nil {
				return exit.UsageError(err)
			}
			files, err := scaffold.New(args[0], k)
			if err != nil {
				return exit.UsageError(err)
			}
			root := filepath.Join(dir, args[0])
			if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
				return errors.Join(fmt.Errorf("%s is there already", root), err)
			}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				file := filepath.Join(root, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					return fmt.Errorf("making the folder: %w", err)
				}
				if err := os.WriteFile(file, []byte(files[name]), 0o644); err != nil {
					return fmt.Errorf("writing the policy: %w", err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), file)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&domain, "domain", "", "what it is about: rollout or protection")
	cmd.Flags().StringVar(&rule, "rule", "", "what it starts from: hold, rank, deny, guard or exempt")
	cmd.Flags().StringVar(&dir, "dir", ".", "the folder to make it in")
	return cmd
}
