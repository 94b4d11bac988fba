// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/regatta-sh/regatta/test/cluster/controlplane"
	"github.com/regatta-sh/regatta/test/cluster/dns"
	"github.com/regatta-sh/regatta/test/cluster/images"
	"github.com/regatta-sh/regatta/test/cluster/registry"
	"github.com/regatta-sh/regatta/test/cluster/state"
	"github.com/regatta-sh/regatta/test/cluster/volumes"
)

// serveCommand is what up starts for what Kubernetes expects of the world
// around it: images to pull, volumes, and names.
func serveCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:    "serve",
		Short:  "Serve images, volumes and names (started by up)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			recorded, err := state.LoadDir(dir)
			if err != nil {
				return err
			}
			logger := log.New(os.Stderr, "", log.LstdFlags|log.Lmsgprefix)
			group, ctx := errgroup.WithContext(command.Context())
			group.Go(func() error { return serveImages(ctx, recorded, logger) })
			group.Go(func() error { return serveVolumes(ctx, recorded, logger) })
			if recorded.Real > 0 {
				group.Go(func() error { return serveNames(ctx, recorded, logger) })
			}
			return group.Wait()
		},
	}
	command.Flags().StringVar(&dir, "dir", "", "directory of the cluster")
	return command
}

func serveImages(ctx context.Context, s *state.State, logger *log.Logger) error {
	var standIn registry.StandIn
	busybox, err := images.FindBusyBox()
	if err == nil {
		standIn, err = images.NewStandIn(busybox)
	}
	if err != nil {
		logger.Printf("serving only what is pushed: %v", err)
		standIn = nil
	}
	handler, err := registry.Open(s.Path("registry"), standIn, logger)
	if err != nil {
		return err
	}
	defer handler.Close()
	listener, err := net.Listen("tcp", s.RegistryAddress())
	if err != nil {
		return fmt.Errorf("listening for the registry: %w", err)
	}
	server := &http.Server{Handler: handler, ErrorLog: logger}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	return server.Serve(listener)
}

func serveVolumes(ctx context.Context, s *state.State, logger *log.Logger) error {
	client, err := controlplane.ClientAs(s, volumes.User)
	if err != nil {
		return err
	}
	return volumes.Run(ctx, client, s.Path("volumes"), logger)
}

func serveNames(ctx context.Context, s *state.State, logger *log.Logger) error {
	client, err := controlplane.ClientAs(s, volumes.User)
	if err != nil {
		return err
	}
	services, err := dns.NewServices(ctx, client)
	if err != nil {
		return err
	}
	if err := dns.Serve(ctx, s.NameServer()+":53", services, logger); err != nil {
		// Something else may answer at port 53 of every address. A cluster
		// without names is better than none.
		logger.Printf("serving no names: %v", err)
	}
	return nil
}
