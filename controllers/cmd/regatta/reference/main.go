// SPDX-License-Identifier: Apache-2.0

// Command reference writes the page of the commands of regatta from their help.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/root"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

const page = "controllers/cmd/regatta/README.md"

func main() {
	if err := os.WriteFile(page, renderPage(root.NewCommand()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// renderPage is the page of a command and of all commands below it.
func renderPage(top *cobra.Command) []byte {
	top.InitDefaultHelpCmd()
	top.InitDefaultCompletionCmd()
	cluster := pflag.NewFlagSet("", pflag.ContinueOnError)
	target.NewCluster().AddFlags(cluster)
	out := &bytes.Buffer{}
	fmt.Fprintf(out, `# Commands of %s

`+"`make generate`"+` writes this page from the help of the commands. Arguments and flags are named as in kubectl. A command
ends with 0 if all is well, 1 if a policy or the state of the cluster refuses, 2 if it was mistyped, and 3 if it could
not run.

| command | what it does |
|---|---|
`, top.Name())
	commands := listCommands(top)
	for _, c := range commands {
		fmt.Fprintf(out, "| [`%s`](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
	}
	fmt.Fprintf(out, "\n## Flags of the cluster\n\nCommands that read or change a cluster have these flags of kubectl, besides their own.\n\n```text\n%s```\n", cluster.FlagUsages())
	for _, c := range commands {
		writeCommand(out, c, cluster)
	}
	return out.Bytes()
}

// listCommands returns the commands that do something, in the order of the help.
func listCommands(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, below := range c.Commands() {
		if !below.IsAvailableCommand() || below.Name() == "help" {
			continue
		}
		if !below.HasAvailableSubCommands() {
			out = append(out, below)
		}
		out = append(out, listCommands(below)...)
	}
	return out
}

func writeCommand(out *bytes.Buffer, c *cobra.Command, cluster *pflag.FlagSet) {
	about := c.Long
	if about == "" {
		about = c.Short
	}
	fmt.Fprintf(out, "\n## %s\n\n```text\n%s\n\nUsage:\n  %s\n", c.CommandPath(), strings.TrimSpace(about), strings.TrimSuffix(c.UseLine(), " [flags]")+" [flags]")
	if len(c.Aliases) > 0 {
		fmt.Fprintf(out, "\nAliases:\n  %s\n", strings.Join(c.Aliases, ", "))
	}
	if c.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	own, ofCluster := pflag.NewFlagSet("", pflag.ContinueOnError), false
	c.InitDefaultHelpFlag()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Name == "help":
		case cluster.Lookup(f.Name) != nil && cluster.Lookup(f.Name).Usage == f.Usage:
			ofCluster = true
		default:
			own.AddFlag(f)
		}
	})
	if own.HasAvailableFlags() {
		fmt.Fprintf(out, "\nFlags:\n%s", own.FlagUsages())
	}
	if ofCluster {
		fmt.Fprintln(out, "\nIt has the flags of the cluster too.")
	}
	fmt.Fprintln(out, "```")
}
