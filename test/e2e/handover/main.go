// SPDX-License-Identifier: Apache-2.0

// Command handover replaces the images of a sidecar that is upgraded hot: the sidecar in
// any version, the migration that its postStart hook runs, the empty image, and the client.
//
// The containers of a pod share its network, and so abstract sockets of Unix. The sidecar that
// is to work asks the one that works for its listener, so that no connection is refused: what
// comes while neither accepts waits in the queue of the listener.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "handover:", err)
		os.Exit(1)
	}
}

// run does what the first argument says, until the context ends.
func run(ctx context.Context, args []string) error {
	own, other := os.Getenv("SIDECARSET_VERSION"), os.Getenv("SIDECARSET_VERSION_ALT")
	switch {
	case len(args) == 2 && args[0] == "serve":
		return (&sidecar{version: args[1], own: socket(own), other: socket(other), address: address}).run(ctx)
	case len(args) == 1 && args[0] == "migrate":
		return migrate(ctx, socket(own))
	case len(args) == 1 && args[0] == "idle":
		<-ctx.Done()
		return nil
	case len(args) == 1 && args[0] == "ask":
		return ask(ctx, "http://"+address, os.Stdout)
	}
	return fmt.Errorf("reading the arguments: they are %q, want serve VERSION, migrate, idle or ask", args)
}

// address is where the sidecar serves its pod.
const address = "127.0.0.1:8000"

// socket is where a sidecar takes commands, by the version that its container has in the pod.
// One that is upgraded cold has none.
func socket(version string) string { return "@handover-" + version }
