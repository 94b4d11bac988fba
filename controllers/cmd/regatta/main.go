// SPDX-License-Identifier: Apache-2.0

// Command regatta is for users who change workloads, for users who write policies and for users who
// ask why something was decided. It is installed as kubectl-regatta as well.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/root"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
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
	return exit.Code(root.NewCommand().ExecuteContext(ctx))
}
