// SPDX-License-Identifier: Apache-2.0

// Package support is the command that writes an archive for a bug report: the objects, logs and decisions of an installation of Regatta,
// without secrets.
package support

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/check"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/version"
)

// Options say what is collected into an archive.
type Options struct {
	check.Options
	// Only is the namespace that objects and events of namespaces are taken from; empty for all.
	Only string
	// Objects is how many objects of each kind are taken, Agents how many node agents' logs, Decisions how many of the
	// latest decisions.
	Objects, Agents, Decisions int
	// LogBytes is how much of the end of each log is taken, MaxSize how large the archive may become.
	LogBytes, MaxSize int64
}

type command struct {
	Options
	cluster *target.Cluster
	file    string
}

const long = `Support writes an archive for a bug report:

  manifest.txt       what is in it, and what was left out and why
  version.json       of this program and of the API server
  check.json         what regatta check says
  chart/             the objects of the chart: Deployment, DaemonSet, Services, webhook
                     configurations, CRDs without their schemas, lease, quotas
  bundles/           PolicyBundles and ClusterPolicyBundles with their status; of their
                     files the sizes and digests
  objects/           objects of the kinds of Regatta, --objects of each kind
  pods/, events/     of the namespaces of the manager and its agents, and events of objects
                     of our kinds
  logs/              the ends of the logs of managers and agents, also before a restart
  metrics/           of the managers
  decisions.jsonl    the latest decisions, if you may read them
  nodes.json         versions and conditions of nodes
  secrets.txt        names and types of the secrets in the namespace of the manager

Secrets and ConfigMaps are never read. Values of environment variables, arguments, headers
of probes, annotations of others, the files of bundles and what a ResourceDistribution
distributes are left out, certificates are described, and what looks like a secret in any
text is masked, as is every value that was hidden somewhere. Names of your objects,
namespaces, images and nodes are in it: look through it before you send it.

What you may not read is left out, and the manifest says so. It ends with 0 if the archive
was written, 2 if the command was mistyped, and 3 otherwise.`

// NewCommand makes the command. builtin has the policies of the program.
func NewCommand(builtin fs.FS) *cobra.Command {
	o := &command{cluster: target.NewCluster()}
	cmd := &cobra.Command{
		Use:   "support",
		Short: "Write an archive for a bug report, without secrets",
		Long:  long,
		Example: `  regatta support
  regatta support -f report.tar.gz -n shop --objects 20`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Program, err = version.ReadVersion(builtin); err != nil {
				return err
			}
			return o.writeArchiveFile(cmd)
		},
	}
	flags := cmd.Flags()
	o.cluster.AddFlags(flags)
	flags.StringVarP(&o.file, "filename", "f", "", "file to write, - for the standard output; regatta-support-TIME.tar.gz if empty")
	flags.StringVar(&o.Namespace, "manager-namespace", "kruise-system", "namespace of the manager")
	flags.StringVar(&o.Release, "release", "kruise", "what Helm calls the installation")
	flags.IntVar(&o.Objects, "objects", 50, "how many objects of each kind to take; 0 for none")
	flags.IntVar(&o.Agents, "agents", 5, "how many node agents to take the logs of, those that are not ready first")
	flags.IntVar(&o.Decisions, "decisions", 200, "how many of the latest decisions to take; 0 for none")
	flags.Int64Var(&o.LogBytes, "log-bytes", 1<<20, "how much of the end of each log to take")
	flags.Int64Var(&o.MaxSize, "max-size", 32<<20, "how many bytes the archive may have")
	flags.DurationVar(&o.Timeout, "timeout", check.DefaultTimeout, "how long one request may take")
	return exit.FailOnPrintError(cmd)
}

// validateFlags names the flag whose value makes no sense.
func (o *Options) validateFlags() error {
	switch {
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout is %s: it must be more than 0", o.Timeout)
	case o.MaxSize < leastSize:
		return fmt.Errorf("--max-size is %d: it must be %d at least", o.MaxSize, leastSize)
	case o.LogBytes < 0:
		return fmt.Errorf("--log-bytes is %d: it must not be less than 0", o.LogBytes)
	case o.Objects < 0 || o.Agents < 0 || o.Decisions < 0:
		return errors.New("--objects, --agents and --decisions must not be less than 0")
	}
	return nil
}

func (o *command) writeArchiveFile(cmd *cobra.Command) error {
	if err := o.validateFlags(); err != nil {
		return exit.UsageError(err)
	}
	config, err := o.cluster.RESTConfig()
	if err != nil {
		return err
	}
	where, err := o.cluster.ResolveNamespace(target.Target{})
	if err != nil {
		return err
	}
	o.ReleaseNamespace = where.Namespace
	if cmd.Flags().Changed("namespace") {
		o.Only = where.Namespace
	}
	if o.file == "-" {
		_, err := WriteArchive(cmd.Context(), config, o.Options, cmd.OutOrStdout())
		return err
	}
	if o.file == "" {
		o.file = "regatta-support-" + time.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
	}
	n, err := writeFile(o.file, func(to io.Writer) (int, error) { return WriteArchive(cmd.Context(), config, o.Options, to) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Wrote %d files to %s. Its manifest.txt says what is in it and what was left out; look through it before you send it.\n", n, o.file)
	return err
}

// writeFile writes a file that only its owner may read. It never overwrites a file, and leaves no incomplete file
// behind.
func writeFile(path string, write func(io.Writer) (int, error)) (int, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, exit.UsageError(fmt.Errorf("--filename is %q: there is such a file", path))
	}
	if err != nil {
		return 0, fmt.Errorf("making the archive: %w", err)
	}
	n, err := write(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(path))
	}
	return n, nil
}

// WriteArchive collects the data that a bug report needs, and writes it as a gzipped tar. It returns how many files
// are in it.
func WriteArchive(ctx context.Context, config *rest.Config, o Options, to io.Writer) (int, error) {
	scrub, err := newScrubber()
	if err != nil {
		return 0, err
	}
	c, err := newCollector(config, o, &archive{scrub: scrub, most: o.MaxSize})
	if err != nil {
		return 0, err
	}
	if err := c.collectAll(ctx); err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	header := fmt.Sprintf("regatta %s, %s, namespace %s", o.Program.Regatta, now.Format(time.RFC3339), o.Namespace)
	if o.Only != "" {
		header += "; objects and events of namespace " + o.Only + " alone"
	}
	return c.archive.writeTo(to, header, now)
}
