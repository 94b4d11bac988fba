// SPDX-License-Identifier: Apache-2.0

// Package migrate has the command that moves pods from a Deployment to a CloneSet, and back, step by step.
package migrate

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// poll is how often the counts of the workloads are read.
const poll = time.Second

// options are the flags of the command.
type options struct {
	*edit.Options
	step         string
	label        string
	preview      bool
	deleteSource bool
	timeout      time.Duration
	stableFor    time.Duration
	form         *output.Form
	poll         time.Duration
}

// NewCommand makes the command.
func NewCommand() *cobra.Command { return newCommand(poll) }

func newOptions(every time.Duration) *options {
	return &options{
		Options: edit.NewOptions(edit.SelectKinds(func(k edit.Kind) bool { return otherKind(k) != "" })),
		form:    output.New(output.Text, output.YAML, output.JSON), poll: every,
	}
}

func newCommand(every time.Duration) *cobra.Command {
	o := newOptions(every)
	cmd := &cobra.Command{
		Use:   "migrate KIND/NAME",
		Short: "Move the pods of a Deployment to a CloneSet, or back, step by step",
		Long: `Migrate creates a CloneSet with the name and the template of a Deployment, or a Deployment
with those of a CloneSet. It creates pods of the new workload, waits until they are
available, and then deletes as many of the old one, until none is left. As many pods as
before are available at any time, as far as this depends on the command.

The pods of the two have different values of a label (--label), which only the selectors of
the two workloads use. Services, PodDisruptionBudgets and NetworkPolicies select the pods
of both; the command refuses to begin if one of them would not. It does not read the peers
in rules of NetworkPolicies, nor VerticalPodAutoscalers. Labels and annotations by which Helm,
Argo CD and other tools know the old workload are not copied. A HorizontalPodAutoscaler is paused meanwhile: it scales a name
that no object has. Then it scales the new workload. A PodUnavailableBudget that names the
old workload gets a twin for the new one.

A migration that was interrupted goes on when the command runs again. It goes back when the
command gets the new workload. A second run takes over from the first one. If a template is
changed meanwhile, the command stops. The old workload stays with 0 pods unless
--delete-source is set. The command ends with 1 if it may not begin, if someone else scales
the old workload, or if nothing moves for --timeout.

With --preview it prints what it would do, and ends with 1 if it would not begin. With -o yaml it prints the manifest of the new
workload, for a repository, and does nothing else.`,
		Example: `  regatta migrate deployment/web --preview
  regatta migrate deployment/web --step 25%
  regatta migrate clone/web
  regatta migrate deployment/web -o yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := o.parseSource(args)
			return err
		},
		RunE: o.runMigrate,
	}
	o.Cluster.AddFlags(cmd.Flags())
	o.form.AddTo(cmd)
	f := cmd.Flags()
	f.StringVar(&o.step, "step", "1", "how many pods more than before may exist, as a number or as a percentage of the replicas, rounded up")
	f.StringVar(&o.label, "label", "workload", "the label that tells the pods of the two workloads apart; its value is the kind in lower case")
	f.BoolVar(&o.preview, "preview", false, "print what the command would do, and change nothing")
	f.BoolVar(&o.deleteSource, "delete-source", false, "delete the old workload at the end")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "fail if no pod moves for this time; 0 waits without a limit")
	f.DurationVar(&o.stableFor, "stable-for", 5*time.Second, "how long new pods must be available before old ones go, besides minReadySeconds")
	cmd.MarkFlagsMutuallyExclusive("preview", "output")
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, false)
	return exit.FailOnPrintError(cmd)
}

// otherKind is the kind that pods of a kind move to; empty if there is none.
func otherKind(k edit.Kind) string {
	switch {
	case k.Group == appsv1.GroupName && k.Kind == deployment:
		return cloneSet
	case k.Group == kruise.GroupVersion.Group && k.Kind == cloneSet:
		return deployment
	}
	return ""
}

// parseSource reads the workload whose pods move.
func (o *options) parseSource(args []string) (edit.Reference, error) {
	references, err := o.ParseReferences(args)
	if err != nil {
		return edit.Reference{}, err
	}
	if len(references) > 1 {
		return edit.Reference{}, errors.New("name one workload")
	}
	return references[0], nil
}

// migration is a run of the command.
type migration struct {
	client    client.Client
	namespace string
	out       io.Writer
	poll      time.Duration
	timeout   time.Duration
	stableFor time.Duration
}

func (m *migration) printLine(format string, args ...any) {
	_, _ = fmt.Fprintf(m.out, format+"\n", args...) // the command fails at its end if a line could not be printed
}

func (o *options) runMigrate(cmd *cobra.Command, args []string) error {
	about, err := o.parseSource(args)
	if err != nil {
		return exit.UsageError(err)
	}
	if err := o.validateFlags(); err != nil {
		return exit.UsageError(err)
	}
	ctx := cmd.Context()
	m, err := o.newMigration(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	p, err := o.buildPlan(ctx, m, about)
	if err != nil {
		return err
	}
	switch {
	case o.form.String() != output.Text:
		return o.printTarget(m, p)
	case p.moved && o.preview:
		m.printLine("The pods of %s have moved to %s already.", p.source, p.target)
		return nil
	case p.moved:
		return m.finishMoved(ctx, p)
	}
	if _, err := fmt.Fprint(m.out, p); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if err := p.checkReferences(); err != nil {
		return exit.RefusalError(err)
	}
	if o.preview {
		return nil
	}
	return m.carryOut(ctx, p)
}

// validateFlags checks the flags before the cluster is asked.
func (o *options) validateFlags() error {
	if errs := validation.IsQualifiedName(o.label); len(errs) > 0 {
		return fmt.Errorf("--label is %q: %s", o.label, strings.Join(errs, "; "))
	}
	if o.timeout < 0 || o.stableFor < 0 {
		return errors.New("--timeout and --stable-for must not be negative")
	}
	if o.timeout > 0 && o.stableFor > o.timeout {
		return fmt.Errorf("--stable-for is %s, longer than --timeout, which is %s", o.stableFor, o.timeout)
	}
	_, err := o.resolveStep(1)
	return err
}

// resolveStep is how many pods more than before may exist: 1 or more.
func (o *options) resolveStep(replicas int) (int, error) {
	step := intstr.Parse(o.step)
	n, err := intstr.GetScaledValueFromIntOrPercent(&step, replicas, true)
	if err != nil || n < 0 || step.Type == intstr.Int && n == 0 || o.step == "0%" {
		return 0, fmt.Errorf("--step is %q; want a number of 1 or more, or a percentage such as 25%%", o.step)
	}
	return max(n, 1), nil
}

func (o *options) newMigration(out io.Writer) (*migration, error) {
	config, err := o.Cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	about, err := o.Cluster.ResolveNamespace(target.Target{})
	if err != nil {
		return nil, err
	}
	scheme, err := preflight.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &migration{client: client.WithFieldOwner(c, "regatta"), namespace: about.Namespace, out: out, poll: o.poll, timeout: o.timeout, stableFor: o.stableFor}, nil
}

// printTarget prints the manifest of the target with all pods.
func (o *options) printTarget(m *migration, p *plan) error {
	full := p.target.copyObject()
	full.setReplicas(p.total)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(full.object)
	if err != nil {
		return fmt.Errorf("printing %s: %w", p.target, err)
	}
	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "spec", "template", "metadata", "creationTimestamp")
	out := &unstructured.Unstructured{Object: fields}
	annotations := keepOwn(out.GetAnnotations())
	clean := map[string]any{"name": out.GetName(), "namespace": out.GetNamespace()}
	if err := unstructured.SetNestedMap(fields, clean, "metadata"); err != nil {
		return fmt.Errorf("printing %s: %w", p.target, err)
	}
	out.SetLabels(full.object.GetLabels())
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	out.SetAPIVersion(p.target.apiVersion())
	out.SetKind(p.target.kind)
	var printer printers.ResourcePrinter = &printers.YAMLPrinter{}
	if o.form.String() == output.JSON {
		printer = &printers.JSONPrinter{}
	}
	if err := printer.PrintObj(out, m.out); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
