// SPDX-License-Identifier: Apache-2.0

// Package policy has the commands for people who write policies, in the order
// in which they use them: new, fmt, test, lint, verify, build, sign, inspect,
// push, pull, replay, cost, prove and simulate. They need no cluster.
package policy

import (
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/shipped"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
)

// New makes the command with all that are below it.
func New(builtin fs.FS, opts ...Option) *cobra.Command {
	c := &commands{builtin: builtin, runner: gate.InProcess{}}
	for _, o := range opts {
		o(c)
	}
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Write, test, verify, sign and ship policies",
		Long: `Policy has what people need who write policies. All of its commands end with

  0  all is fine
  1  policy says no: a test, the gate or a signature
  2  the command was mistyped
  3  it could not run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.newScaffoldCommand(), c.newCheckCommand(), c.newTestCommand(), c.newEvalCommand(), c.newLintCommand(), c.newFmtCommand(), c.newVerifyCommand(), c.newBuildCommand(), c.newSignCommand(), c.newInspectCommand(), c.newPushCommand(), c.newPullCommand(), c.newReplayCommand(), c.newCostCommand(), c.newProveCommand(), c.newSimulateCommand())
	cmd.AddCommand(shipped.NewCommands(func(path string) (*bundle.Bundle, error) { return loadBundle(path, nil) })...)
	return exit.WithExitCodes(exit.FailOnPrintError(cmd))
}

// Option changes the commands.
type Option func(*commands)

// WithRunner sets the runner of the steps of the gate.
func WithRunner(r gate.Runner) Option { return func(c *commands) { c.runner = r } }

type commands struct {
	builtin fs.FS
	runner  gate.Runner
}

// kind has the flags that describe a bundle.
type kind struct {
	namespace string
	builtin   bool
}

func (k *kind) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&k.namespace, "namespace", "n", "", "the bundle is a PolicyBundle of this namespace, and may only be stricter")
	cmd.Flags().BoolVar(&k.builtin, "builtin", false, "the bundle takes the place of the built-in policies")
	cmd.MarkFlagsMutuallyExclusive("namespace", "builtin")
}

func (k *kind) bundleOptions() []bundle.Option {
	switch {
	case k.namespace != "":
		return []bundle.Option{bundle.AsTenant(k.namespace)}
	case k.builtin:
		return []bundle.Option{bundle.AsBuiltin()}
	}
	return nil
}

// loadWithBuiltin reads a bundle and the built-in one that it would be active with, which
// may be itself.
func (c *commands) loadWithBuiltin(path string, k *kind) (b, builtin *bundle.Bundle, err error) {
	if b, err = loadBundle(path, nil, k.bundleOptions()...); err != nil {
		return nil, nil, wrapRefusal(prefixProblemPaths(path, err))
	}
	if k.builtin {
		return b, b, nil
	}
	builtin, err = bundle.ReadBuiltin(c.builtin)
	return b, builtin, err
}

// LoadBundles reads platform bundles: folders, archives or single files.
func LoadBundles(paths []string) (bundle.Set, error) { return loadAll(paths) }

func loadAll(paths []string) (bundle.Set, error) {
	var set bundle.Set
	for _, path := range paths {
		b, err := loadBundle(path, nil)
		if err != nil {
			return nil, wrapRefusal(prefixProblemPaths(path, err))
		}
		set = append(set, b)
	}
	return set, nil
}
