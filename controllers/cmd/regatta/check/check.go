// SPDX-License-Identifier: Apache-2.0

// Package check is the command that reports whether Regatta can be installed in a cluster, and whether an installation works. It
// changes nothing: it creates objects only as dry runs.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/version"
)

// Options say what is checked, and how.
type Options struct {
	// Namespace is that of the manager.
	Namespace string
	// Release and ReleaseNamespace are what Helm calls the installation, and where Helm keeps it.
	Release, ReleaseNamespace string
	// Phase is Before or After; empty to detect it.
	Phase Phase
	// Rendered is a file with the objects that are to be installed, as helm template prints them; - for the standard input, empty for samples.
	Rendered string
	// Timeout is how long one request may take.
	Timeout time.Duration
	// Program is this one.
	Program version.Version
}

// DefaultTimeout is how long one request may take if no timeout is set.
const DefaultTimeout = 15 * time.Second

type command struct {
	Options
	cluster       *target.Cluster
	form          *output.Form
	before, after bool
	strict        bool
}

const long = `Check tells whether Regatta can be installed in a cluster, or whether an installation
works. It looks which of the two it is; --before and --after say it instead.

Before an installation it looks at the version of Kubernetes, what you may create, what is
there already, the nodes, and what policy engines, webhooks and Pod Security would say:
it creates objects such as the chart's as a dry run, which the API server does not keep. By -f
these are the chart's own, with your values:

  helm template kruise charts/kruise -f values.yaml | regatta check --before -f -

After it, it looks at the managers, their lease and quotas, the webhooks and their
certificates, the CRDs, feature gates, policy bundles, the node agents, and whether the
versions of all agree with its own. Each webhook is asked about a dry run.

A finding blocks, warns, is unknown or is fine, and says what to do. With -o json it is
of the schema ` + Schema + `, to which fields may be added:

  schema, phase (Before, After), result (the worst status), client, manager, kubernetes,
  namespace, and findings: a list of status (Blocks, Warns, Unknown, Fine), check, object,
  field, message and fix

It ends with

  0  nothing blocks
  1  something does; with --strict, anything is not fine
  2  the command was mistyped
  3  it could not run, such as without an API server

A request that fails is a finding: Unknown if you may not make it, Blocks otherwise.`

// NewCommand makes the command. builtin has the policies of the program.
func NewCommand(builtin fs.FS) *cobra.Command {
	o := &command{cluster: target.NewCluster(), form: output.New(output.Text, output.JSON)}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Tell whether Regatta can be installed, or whether it works",
		Long:  long,
		Example: `  regatta check
  regatta check --strict -o json
  helm template kruise charts/kruise | regatta check --before -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Program, err = version.ReadVersion(builtin); err != nil {
				return err
			}
			return o.runCheck(cmd)
		},
	}
	flags := cmd.Flags()
	o.cluster.AddFlags(flags)
	o.form.AddTo(cmd)
	flags.StringVar(&o.Namespace, "manager-namespace", "kruise-system", "namespace of the manager")
	flags.StringVar(&o.Release, "release", "kruise", "what Helm calls the installation; -n is where Helm keeps it")
	flags.StringVarP(&o.Rendered, "filename", "f", "", "file with the objects to be installed, as helm template prints them; - for the standard input")
	flags.DurationVar(&o.Timeout, "timeout", DefaultTimeout, "how long one request may take")
	flags.BoolVar(&o.before, "before", false, "check before an installation, whatever is there")
	flags.BoolVar(&o.after, "after", false, "check an installation, whatever is there")
	flags.BoolVar(&o.strict, "strict", false, "end with 1 if anything is not fine")
	cmd.MarkFlagsMutuallyExclusive("before", "after")
	cmd.MarkFlagsMutuallyExclusive("after", "filename")
	return exit.FailOnPrintError(cmd)
}

func (o *command) runCheck(cmd *cobra.Command) error {
	if o.Timeout <= 0 {
		return exit.UsageError(fmt.Errorf("--timeout is %s: it must be more than 0", o.Timeout))
	}
	switch {
	case o.before:
		o.Phase = Before
	case o.after:
		o.Phase = After
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
	var rendered []client.Object
	if o.Rendered != "" {
		if rendered, err = readRendered(cmd.InOrStdin(), o.Rendered); err != nil {
			return exit.UsageError(fmt.Errorf("--filename is %q: %w", o.Rendered, err))
		}
	}
	report, err := InspectCluster(cmd.Context(), config, o.Options, rendered)
	if err != nil {
		return err
	}
	if o.form.String() == output.JSON {
		err = output.PrintJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.printTable(cmd.OutOrStdout())
	}
	if err != nil {
		return err
	}
	return report.exitError(o.strict)
}

// InspectCluster checks a cluster. The objects to be installed are samples if none are rendered. It fails only if no API server answers.
func InspectCluster(ctx context.Context, config *rest.Config, o Options, rendered []client.Object) (*Report, error) {
	i, err := newInspector(config, o)
	if err != nil {
		return nil, err
	}
	i.rendered = rendered
	if err := i.findVersion(ctx); err != nil {
		return nil, err
	}
	if i.report.Phase = o.Phase; o.Phase == "" {
		i.report.Phase = i.findPhase(ctx)
	}
	if i.report.Phase == Before {
		i.checkBefore(ctx)
	} else {
		i.checkAfter(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("checking: %w", err)
	}
	i.report.sortFindings()
	return &i.report, nil
}

// findPhase checks whether a manager of Regatta is installed. OpenKruise's manager has the labels of another
// chart.
func (i *inspector) findPhase(ctx context.Context) Phase {
	err := i.askServer(ctx, func(ctx context.Context) error {
		return i.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: preflight.ManagerDeployment}, &i.manager)
	})
	switch {
	case err == nil && isOfRegatta(&i.manager):
		return After
	case err == nil:
		i.addFinding(Finding{Blocks, "installed", "Deployment " + i.Namespace + "/" + preflight.ManagerDeployment, "metadata.labels", "it is of OpenKruise, or of another installation",
			"regatta preflight, which says what a change over makes different"})
	case !apierrors.IsNotFound(err):
		i.addError("installed", "Deployment "+i.Namespace+"/"+preflight.ManagerDeployment, "get", err)
	}
	return Before
}

// isOfRegatta reports whether a Deployment is the manager of this chart. Unlike OpenKruise's, it carries the name of its
// chart.
func isOfRegatta(d *appsv1.Deployment) bool {
	return cmp.Or(d.Labels["app.kubernetes.io/name"], d.Spec.Template.Labels["app.kubernetes.io/name"]) == "kruise"
}

// errNoAPIServer is returned if no API server can be reached.
func errNoAPIServer(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("asking the API server for its version: no answer in time; --timeout says how long it may take: %w", err)
	}
	return fmt.Errorf("asking the API server for its version: %w", err)
}
