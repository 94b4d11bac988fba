// SPDX-License-Identifier: Apache-2.0

// Package dashboard has the command that serves a web page about the workloads of a cluster: which rollouts run, which pods
// wait, which rule holds them and until when, which decisions are made and what became of bundles and budgets. The page reads
// the cluster with the credentials of the user who runs the command, and changes nothing.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// defaultPort is the port of the page. The dashboard of Argo Rollouts has the same default.
const defaultPort = 3100

type options struct {
	cluster       *target.Cluster
	asked         managers.Flags
	address       string
	port          int
	allNamespaces bool
}

// NewCommand makes the command.
func NewCommand() *cobra.Command {
	o := &options{cluster: target.NewCluster().WithoutTimeout()}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve a web page that shows rollouts, decisions, policies and budgets live",
		Long: `Dashboard serves a web page on this machine and prints its address. The page shows the
workloads of a namespace or of the whole cluster; one rollout pod by pod, with the rule
that holds a pod, until when, and what would change it; decisions as they are made;
bundles of policies with their stages and shadows; and budgets with the pods that used them.

The page reads the cluster with your credentials and changes nothing. Only a browser that
opened the printed address, which has a secret in it, can read the page. Ctrl-C ends it.`,
		Example: `  regatta dashboard
  regatta dashboard -A --port 8080
  regatta dashboard -n shop`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.serveDashboard(cmd) },
	}
	o.cluster.AddFlags(cmd.Flags())
	o.asked.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.address, "address", "127.0.0.1", "the loopback address of this machine to listen on, 127.0.0.1 or ::1")
	cmd.Flags().IntVar(&o.port, "port", defaultPort, "the port to listen on; 0 takes one that is free")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show all namespaces in place of one")
	return cmd
}

func (o *options) serveDashboard(cmd *cobra.Command) error {
	// The page is not encrypted, and shows what the credentials of the user can read.
	if ip := net.ParseIP(o.address); ip == nil || !ip.IsLoopback() {
		return exit.UsageError(fmt.Errorf("--address is %q, want 127.0.0.1 or ::1: the page is for this machine only; "+
			"from another machine, forward the port with ssh -L", o.address))
	}
	if o.port < 0 || o.port > 65535 {
		return exit.UsageError(fmt.Errorf("--port is %d, want 0 to 65535", o.port))
	}
	scope, err := o.cluster.ResolveNamespace(target.Target{})
	if err != nil {
		return err
	}
	if o.allNamespaces {
		scope.Namespace = ""
	}
	access, err := o.cluster.OpenClients(o.asked)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", net.JoinHostPort(o.address, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("%w; --port 0 takes a port that is free", err)
	}
	klog.SetLogger(logr.Discard()) // the page reports errors of watches itself
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	s := newServer(ctx, newCollector(access, scope.Namespace), listener.Addr())
	fmt.Fprintf(cmd.OutOrStdout(), "The dashboard is at %s\nCtrl-C ends it.\n", s.pageURL())
	return serveHTTP(ctx, s, listener)
}

// serveHTTP serves until ctx is done.
func serveHTTP(ctx context.Context, s *server, listener net.Listener) error {
	web := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer stopped()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the dashboard: %w", err)
	}
	return nil
}
