// SPDX-License-Identifier: Apache-2.0

// Package agent assembles the agents of a node into one process (PL-10).
package agent

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/nodeagent/cri"
)

// Options are the flags of the agent, with the names and defaults of PL-10.
type Options struct {
	Logging *logsapi.LoggingConfiguration
	Gates   features.Gates

	Addr       string
	Pprof      bool
	PprofAddr  string
	QPS        float32
	Burst      int
	SocketFile string
	// PullWorkers is how many images are pulled at once; any number if it is less than 1.
	PullWorkers int
	// PluginConfig is the file that names credential provider plugins, and PluginDirectory has
	// their programs.
	PluginConfig, PluginDirectory string

	env environment
	// sockets is the directory of the host's sockets.
	sockets string
}

// environment has the settings that the chart passes in environment variables.
type environment struct {
	node    string
	address string // of the node, "" if it is not set
}

// NewOptions makes options with their defaults.
func NewOptions() (*Options, error) {
	gates, err := features.New()
	if err != nil {
		return nil, err
	}
	return &Options{Logging: logsapi.NewLoggingConfiguration(), Gates: gates, sockets: cri.SocketDirectory}, nil
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	logsapi.AddFlags(o.Logging, fs)
	fs.Var(o.Gates, "feature-gates", "A list of key=value pairs that turn features on or off, as that of the manager.")
	fs.StringVar(&o.Addr, "addr", ":10221", "Address that metrics and healthz are served on.")
	fs.BoolVar(&o.Pprof, "enable-pprof", true, "Serve profiles.")
	fs.StringVar(&o.PprofAddr, "pprof-addr", "localhost:10222", "Address that profiles are served on.")
	fs.Float32Var(&o.QPS, "rest-config-qps", 0, "Requests a second to the API server; the default of the client library if 0.")
	fs.IntVar(&o.Burst, "rest-config-burst", 0, "Requests to the API server beyond that for a moment; the default of the client library if 0.")
	fs.IntVar(&o.PullWorkers, "max-workers-for-pull-image", -1, "How many images are pulled at once; any number if less than 1.")
	fs.StringVar(&o.PluginConfig, "plugin-config-file", "/kruise/CredentialProviderPlugin.yaml", "A CredentialProviderConfig of the kubelet, with the plugins that know how to log in to registries. No plugins if the file does not exist.")
	fs.StringVar(&o.PluginDirectory, "plugin-bin-dir", "/kruise/plugins", "Directory with the programs of these plugins.")
	fs.StringVar(&o.SocketFile, "socket-file", "", "Socket of the container runtime, relative to "+cri.SocketDirectory+"; the usual places are tried if empty.")
}

// Complete checks the flags, reads the environment, and resolves the gates.
func (o *Options) Complete() error {
	o.env = environment{node: os.Getenv("NODE_NAME"), address: os.Getenv("NODE_IP")}
	var wrong []error
	if o.env.node == "" {
		wrong = append(wrong, errors.New("environment variable NODE_NAME is empty, want the name of the node that this agent runs on"))
	}
	if o.QPS < 0 {
		wrong = append(wrong, fmt.Errorf("--rest-config-qps is %g, want 0 or more", o.QPS))
	}
	if o.Burst < 0 {
		wrong = append(wrong, fmt.Errorf("--rest-config-burst is %d, want 0 or more", o.Burst))
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	if err := logsapi.ValidateAndApply(o.Logging, nil); err != nil {
		return fmt.Errorf("applying log flags: %w", err)
	}
	logs.InitLogs()
	return o.Gates.ResolveDependencies("")
}
