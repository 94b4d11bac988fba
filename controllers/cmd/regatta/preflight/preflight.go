// SPDX-License-Identifier: Apache-2.0

// Package preflight is the command that reports what a migration from OpenKruise would change in a
// cluster. It reads, and writes nothing.
package preflight

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// Effect says how much a difference matters.
type Effect string

// The effects, the worst first.
const (
	// Blocks is a difference that Helm or the API server would refuse, or that would lose pods.
	Blocks Effect = "Blocks"
	// Differs is a difference in behavior after the migration, unless the user does what the last column says.
	Differs Effect = "Differs"
	// Note is something that continues as before, or that could not be read.
	Note Effect = "Note"
)

// Row is one difference.
type Row struct {
	Effect Effect `json:"effect"`
	// Object is the kind and name of an object, Field the part of it that differs.
	Object string `json:"object"`
	Field  string `json:"field"`
	There  string `json:"there"`
	Here   string `json:"here"`
	// Do is what the user can do about it, empty for nothing.
	Do string `json:"do,omitempty"`
}

// Report is what is printed.
type Report struct {
	// Command is the command that migrates the release, empty if no release was found.
	Command string `json:"command,omitempty"`
	// Try is the command as a dry run. It changes nothing, and finds values that only the templates of the chart
	// refuse.
	Try string `json:"try,omitempty"`
	// Nothing is true if nothing of OpenKruise is in the cluster.
	Nothing bool  `json:"nothing,omitempty"`
	Rows    []Row `json:"rows"`
}

type options struct {
	cluster   *target.Cluster
	form      *output.Form
	failOn    *output.Form
	namespace string
}

// NewCommand makes the command.
func NewCommand() *cobra.Command {
	o := &options{
		cluster: target.NewCluster().WithoutNamespace(), form: output.New(output.Text, output.JSON),
		failOn: output.New("blocks", "differs"),
	}
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Tell what a change over from OpenKruise would make different",
		Long: `Preflight reads a cluster that OpenKruise is installed in: its release, the flags and
feature gates of its manager, its webhook configurations, its CRDs, and all objects
of its kinds. It prints what would be refused (Blocks), what would behave otherwise
(Differs) and what goes on (Note), and the command that changes the release over,
which begins as a trial with --dry-run=server. It writes nothing.

It ends with

  0  nothing is in the way, or nothing of OpenKruise is there
  1  something is: of the effect that --fail-on names, or a worse one
  2  the command was mistyped
  3  it could not run

It needs to get and list objects of OpenKruise's kinds, CRDs, webhook configurations
and the Deployment of the manager; and to list secrets in the namespace of the release,
where it reads the values that users set. Without that permission a row says so.`,
		Example: `  regatta preflight
  regatta preflight --fail-on differs
  regatta preflight -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runPreflight(cmd) },
	}
	o.cluster.AddFlags(cmd.Flags())
	o.form.AddTo(cmd)
	cmd.Flags().Var(o.failOn, "fail-on", "the least effect that ends it with 1: blocks or differs")
	cmd.Flags().StringVar(&o.namespace, "manager-namespace", "kruise-system", "namespace of the manager")
	return exit.FailOnPrintError(cmd)
}

func (o *options) runPreflight(cmd *cobra.Command) error {
	config, err := o.cluster.RESTConfig()
	if err != nil {
		return err
	}
	s, err := NewScheme()
	if err != nil {
		return err
	}
	reader, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	l := &look{Reader: reader, namespace: o.namespace, version: version}
	report, err := l.buildReport(cmd.Context())
	if err != nil {
		return err
	}
	if o.form.String() == output.JSON {
		err = output.PrintJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.printReport(cmd.OutOrStdout())
	}
	if err != nil {
		return err
	}
	return report.failureError(o.failOn.String())
}

// failureError is an error if a row has the effect or a worse one.
func (r Report) failureError(effect string) error {
	count := func(e Effect) int {
		return len(slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.Effect != e }))
	}
	blocks, differs := count(Blocks), count(Differs)
	if blocks > 0 || effect == "differs" && differs > 0 {
		return exit.RefusalError(fmt.Errorf("%d blocks the change over, and %d would be different", blocks, differs))
	}
	return nil
}

// formatCell writes a text of the cluster into a line of a table. A control character, such as the end of a line, would write over others.
func formatCell(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

func (r Report) printReport(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(r.Rows) > 0 {
		fmt.Fprintln(t, "EFFECT\tOBJECT\tFIELD\tTHERE\tHERE\tDO")
	}
	for _, row := range r.Rows {
		cells := []string{string(row.Effect), row.Object, row.Field, row.There, row.Here, row.Do}
		for i, cell := range cells {
			cells[i] = cmp.Or(formatCell(cell), "-")
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Nothing {
		_, err := fmt.Fprintln(out, "There is nothing to change over from: neither a manager nor a CRD or a webhook of OpenKruise is here. regatta check says what an installation needs.")
		return err
	}
	if r.Command == "" {
		_, err := fmt.Fprintln(out, "There is no release of OpenKruise here.")
		return err
	}
	_, err := fmt.Fprintf(out, "Try first whether Helm takes values that go together, which changes nothing: %s\nChange over with: %s\n", r.Try, r.Command)
	return err
}
