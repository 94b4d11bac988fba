// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// The values of --dry-run, as in kubectl.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// Options are the flags that commands which change objects share, with the names and meanings of kubectl.
type Options struct {
	Cluster *target.Cluster
	// Allowed are the kinds that the command changes.
	Allowed []Kind

	selector     string
	all          bool
	dryRun       string
	fieldManager string
	print        *genericclioptions.PrintFlags

	// warnings is where what an API server warns of, and what a reader of a preview has to know, is written to.
	warnings         func() io.Writer
	previews         bool
	preview          Preview
	managerNamespace string
}

// NewOptions makes the flags of a command that changes objects of these kinds.
func NewOptions(allowed []Kind) *Options {
	return &Options{
		Cluster: target.NewCluster(), Allowed: allowed, dryRun: dryRunNone,
		print:    genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme),
		warnings: func() io.Writer { return os.Stderr },
	}
}

// AddFlags adds the flags to a command.
func (o *Options) AddFlags(cmd *cobra.Command) {
	o.Cluster.AddFlags(cmd.Flags())
	o.warnings = cmd.ErrOrStderr
	f := cmd.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "change the objects of a kind that have these labels, such as app=web")
	f.BoolVar(&o.all, "all", false, "change all objects of a kind in the namespace")
	f.StringVar(&o.dryRun, "dry-run", dryRunNone, "none, client or server: print what the objects would become, and change nothing; server has the API server check it")
	f.Lookup("dry-run").NoOptDefVal = "unchanged" // refused with a word, as in kubectl
	f.StringVar(&o.fieldManager, "field-manager", "regatta", "name of the manager that owns the fields that are changed")
	o.print.AddFlags(cmd)
}

// Reference names an object on the command line.
type Reference struct {
	Kind Kind
	// Name is empty if the objects are selected.
	Name string
}

// ParseReferences reads KIND/NAME... or KIND NAME..., or a KIND whose objects --selector or --all
// selects. All of them are of one of the allowed kinds.
func (o *Options) ParseReferences(args []string) ([]Reference, error) {
	want := JoinArguments(o.Allowed, ", ", " or ")
	selected := o.selector != "" || o.all
	switch {
	case o.selector != "" && o.all:
		return nil, errors.New("--selector and --all exclude each other")
	case len(args) == 0:
		return nil, fmt.Errorf("name an object; want %s", want)
	case selected && (len(args) > 1 || strings.Contains(args[0], "/")):
		return nil, errors.New("with --selector or --all, name a kind only")
	}
	if selected {
		if _, err := labels.Parse(o.selector); err != nil {
			return nil, fmt.Errorf("--selector is %q: %w", o.selector, err)
		}
		kind, err := findKind(args[0], o.Allowed)
		return []Reference{{Kind: kind}}, err
	}
	if len(args) > 1 && !strings.Contains(args[0], "/") {
		return o.parseNames(args[0], args[1:])
	}
	var out []Reference
	for _, arg := range args {
		word, name, slash := strings.Cut(arg, "/")
		switch {
		case !slash:
			return nil, fmt.Errorf("%q names no object; want %s", arg, want)
		case name == "" || strings.Contains(name, "/"):
			return nil, fmt.Errorf("%q is not the name of an object; want %s", arg, want)
		}
		kind, err := findKind(word, o.Allowed)
		if err != nil {
			return nil, err
		}
		out = append(out, Reference{kind, name})
	}
	return out, nil
}

// parseNames reads the names of objects of one kind.
func (o *Options) parseNames(word string, names []string) ([]Reference, error) {
	kind, err := findKind(word, o.Allowed)
	if err != nil {
		return nil, err
	}
	var out []Reference
	for _, name := range names {
		if name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q is not the name of a %s; write KIND/NAME for each object, or a KIND and names", name, kind.Kind)
		}
		out = append(out, Reference{kind, name})
	}
	return out, nil
}

// ValidateFlags checks the flags before the cluster is asked.
func (o *Options) ValidateFlags() error {
	if !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, o.dryRun) {
		return exit.UsageError(fmt.Errorf("--dry-run is %q; want --dry-run=client, --dry-run=server or --dry-run=none", o.dryRun))
	}
	if _, err := o.print.ToPrinter(); err != nil {
		return exit.UsageError(err)
	}
	return nil
}

// IsDryRun is true if nothing is to be changed.
func (o *Options) IsDryRun() bool { return o.dryRun != dryRunNone }

// serverDryRun is the field of a write that makes it a dry run.
func (o *Options) serverDryRun() []string {
	if o.dryRun == dryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// OpenClient makes a client of the cluster.
func (o *Options) OpenClient() (dynamic.Interface, error) {
	config, err := o.Cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NewWarningWriter(o.warnings(), rest.WarningWriterOptions{Deduplicate: true})
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return objects, nil
}

// PrintObject prints what was done to an object, such as
// "cloneset.apps.kruise.io/web paused", or the object in the form of --output.
func (o *Options) PrintObject(w io.Writer, object runtime.Object, done string) error {
	flags := *o.print
	name := *flags.NamePrintFlags
	name.Operation = done
	flags.NamePrintFlags = &name
	switch o.dryRun {
	case dryRunClient:
		name.Operation += " (dry run)"
	case dryRunServer:
		name.Operation += " (server dry run)"
	}
	printer, err := flags.ToPrinter()
	if err != nil {
		return exit.UsageError(err)
	}
	if err := printer.PrintObj(object, w); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
