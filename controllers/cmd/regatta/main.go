// SPDX-License-Identifier: Apache-2.0

// Command regatta is for users who write policies and for users who ask why something was decided. It
// is installed as kubectl-regatta as well.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/check"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/rollout"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/sidecar"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/support"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/version"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/why"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/policies"
)

func main() {
	if gate.IsChild() {
		os.Exit(gate.ServeChild(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(executeCommand())
}

func executeCommand() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := &cobra.Command{
		Use:   "regatta",
		Short: "Policies that decide how workloads change",
		// An error is printed once, and usage only when the user asks for it.
		SilenceUsage: true,
	}
	root.AddCommand(policy.New(policies.Builtin, policy.WithRunner(gate.Child{})), why.NewCommand(), rollout.NewCommand(), preflight.NewCommand(), check.NewCommand(policies.Builtin), support.NewCommand(policies.Builtin), sidecar.NewCommand(policies.Builtin), version.NewCommand(policies.Builtin))

	return exit.Code(exit.WithExitCodes(root).ExecuteContext(ctx))
}
