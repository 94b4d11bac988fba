// SPDX-License-Identifier: Apache-2.0

// Package root assembles the commands of regatta.
package root

import (
	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/audit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/check"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/create"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/dashboard"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/migrate"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/pods"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preview"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/rollout"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/scale"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/set"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/sidecar"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/support"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/version"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/why"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/policies"
)

// The groups of commands in the help.
const (
	changes  = "changes"
	reaches  = "reaches"
	explains = "explains"
	writes   = "policies"
	operates = "operates"
)

// NewCommand makes the command with all its subcommands.
func NewCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "regatta",
		Short: "Policies that decide how workloads change",
		Long: `Regatta changes workloads, reaches their containers, explains what policies decide about
them, and has what is needed to write, test and ship policies. It finds the cluster as
kubectl does. Installed as kubectl-regatta it is the plugin "kubectl regatta".`,
		// An error is printed once, and usage only when the user asks for it.
		SilenceUsage: true,
	}
	root.AddGroup(
		&cobra.Group{ID: changes, Title: "Change workloads:"},
		&cobra.Group{ID: reaches, Title: "Reach containers:"},
		&cobra.Group{ID: explains, Title: "Ask why:"},
		&cobra.Group{ID: writes, Title: "Write and ship policies:"},
		&cobra.Group{ID: operates, Title: "Operate:"},
	)
	simulate := preview.New(policies.Builtin)
	addCommands(root, changes, rollout.NewCommand(simulate), set.NewCommand(simulate), scale.NewCommand(), scale.NewScaleDownCommand(), scale.NewPartitionCommand(simulate), create.NewCommand(),
		pods.NewExposeCommand(), pods.NewAutoscaleCommand(), migrate.NewCommand())
	addCommands(root, reaches, pods.NewExecCommand(), pods.NewLogsCommand())
	addCommands(root, explains, why.NewCommand(), dashboard.NewCommand(), sidecar.NewCommand(policies.Builtin))
	addCommands(root, writes, policy.New(policies.Builtin, policy.WithRunner(gate.Child{})))
	addCommands(root, operates, preflight.NewCommand(), check.NewCommand(policies.Builtin), audit.NewCommand(policies.Builtin), support.NewCommand(policies.Builtin), version.NewCommand(policies.Builtin))
	return exit.WithExitCodes(root)
}

func addCommands(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
	}
	root.AddCommand(commands...)
}
