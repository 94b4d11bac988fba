// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/keys"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/shipped"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/evidence"
	"github.com/regatta-sh/regatta/engine/record"
)

// exporting is one run of the command export.
type exporting struct {
	builtin      fs.FS
	from         []string
	since, until moment
	bundles      []string
	kept         bool
	after        string
	output       string
	signer       keys.Signer
	cluster      *target.Cluster
	asked        managers.Flags
	manager      string // the namespace of the manager
	before       *evidence.Manifest
}

// fromCluster is the value of --from for the managers of a cluster.
const fromCluster = "cluster"

func newExportCommand(builtin fs.FS) *cobra.Command {
	x := exporting{builtin: builtin, since: moment{clock: time.Now}, until: moment{clock: time.Now}, cluster: target.NewCluster().WithoutNamespace()}
	cmd := &cobra.Command{
		Use:   "export --from (FILE... | cluster) -o ARCHIVE",
		Short: "Put decisions and the policies that made them into one signed archive",
		Long: `Export puts decisions into an archive, hour by hour, with the bundles that made them. The
hours are a chain of hashes. With --signing-key, the archive is signed as OPA signs
bundles, so that nothing of it can be changed, removed or added later without that key.
With --after, the chain goes on from the archive that was exported before, so that a
missing archive is seen, too: begin where that one ended.

Decisions are those of decision logs, in files, or those that the managers of a cluster
remember. Managers remember their latest decisions only: evidence that is to be complete
comes from the logs of all replicas. Secrets are masked as they are in the logs.

The bundles are those that the cluster keeps (with --from cluster, or --kept-bundles), those
of --bundle, and the built-in ones of this program. A decision whose bundle is in none of
them is exported and cannot be made again: a warning tells which bundle that is. Built-in
policies of another release are named with --bundle, too.

You need the ClusterRole kruise-decisions-reader for --from cluster, and to read policy
bundles and ControllerRevisions for the bundles that a cluster keeps.`,
		Example: `  regatta audit export --from decisions-0.jsonl,decisions-1.jsonl --kept-bundles --signing-key audit.pem -o november.tar.gz
  regatta audit export --from cluster --since 1h --signing-key audit.pem -o hour.tar.gz
  regatta audit export --from decisions.jsonl --since 2026-12-01 --until 2026-12-02 --after november.tar.gz --bundle change-freeze -o day.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return x.runExport(cmd) },
	}
	x.cluster.AddFlags(cmd.Flags())
	x.asked.AddFlags(cmd.Flags())
	x.signer.AddFlags(cmd.Flags())
	f := cmd.Flags()
	f.StringSliceVar(&x.from, "from", nil, "files of recorded decisions, as lines of JSON; - is the standard input, and cluster what the managers remember")
	f.Var(&x.since, "since", "the first time to export, such as 2026-12-01T10:00:00Z or 36h for how long ago; without it, the first decision")
	f.Var(&x.until, "until", "the time to end before; without it, the last decision")
	f.StringArrayVar(&x.bundles, "bundle", nil, "a bundle that made decisions: a folder, a .tar.gz file or a .rego file; may be repeated")
	f.BoolVar(&x.kept, "kept-bundles", false, "take the bundles that the cluster keeps, also for decisions of files")
	f.StringVar(&x.manager, "manager-namespace", "kruise-system", "namespace of the manager, where bundles of the platform are kept")
	f.StringVar(&x.after, "after", "", "the archive whose chain this one continues")
	f.StringVarP(&x.output, "output", "o", "", "the archive to write; - is the standard output")
	for _, name := range []string{"from", "output"} {
		_ = cmd.MarkFlagRequired(name) // both flags exist
	}
	return cmd
}

func (x *exporting) runExport(cmd *cobra.Command) error {
	opts, err := x.exportOptions()
	if err != nil {
		return err
	}
	if err := x.checkOutput(); err != nil {
		return err
	}
	export := evidence.NewExport(opts...)
	if err := x.addDecisions(cmd, export); err != nil {
		return err
	}
	if err := x.addPolicies(cmd, export); err != nil {
		return err
	}
	var archive bytes.Buffer
	m, err := export.WriteArchive(&archive, time.Now())
	if err != nil {
		return keys.WrapAlgorithmError(err)
	}
	if len(m.Hours) == 0 && (m.Since == nil || m.Until == nil) {
		return errors.New("no decision was found, so nothing is exported; with --since and --until an archive shows that there was none")
	}
	if x.before != nil {
		if err := m.FollowsOn(x.before); err != nil {
			return exit.UsageError(fmt.Errorf("the archive would not follow on %s: %w", x.after, err))
		}
	}
	return x.writeOutput(cmd, m, archive.Bytes())
}

func (x *exporting) exportOptions() ([]evidence.ExportOption, error) {
	if len(x.from) > 1 && slices.Contains(x.from, fromCluster) {
		return nil, exit.UsageError(errors.New("--from is either cluster or files: the managers remember what is in their files"))
	}
	if !x.until.IsZero() && !x.since.Before(x.until.Time) {
		return nil, exit.UsageError(errors.New("--until is not after --since"))
	}
	opts := []evidence.ExportOption{evidence.LimitTimes(x.since.Time, x.until.Time)}
	if x.signer.Key != "" {
		if err := x.signer.CheckKey(); err != nil {
			return nil, err
		}
		opts = append(opts, evidence.SignWith(x.signer.Signing))
	} else if x.signer.Algorithm != "" || x.signer.KeyID != "" || x.signer.Scope != "" {
		return nil, exit.UsageError(errors.New("--signing-alg, --key-id and --scope go with --signing-key"))
	}
	if x.after == "" {
		return opts, nil
	}
	before, err := checkFile(x.after)
	if err != nil {
		return nil, err
	}
	x.before = before
	if link := before.LastLink(); link != "" {
		opts = append(opts, evidence.ContinueChain(link))
	}
	return opts, nil
}

// checkFile checks an archive that is to be continued, without making its decisions again.
func checkFile(path string) (*evidence.Manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the archive before: %w", err)
	}
	defer f.Close()
	m, err := evidence.CheckArchive(f, nil)
	if err != nil {
		return nil, wrapRefusal(fmt.Errorf("reading the archive before: %s: %w", path, err))
	}
	return m, nil
}

// checkOutput refuses to write the archive over what it is made of.
func (x *exporting) checkOutput() error {
	out, err := os.Stat(x.output)
	if err != nil { // it is not there yet, or cannot be written
		return nil
	}
	for _, path := range append([]string{x.after}, x.from...) {
		if in, err := os.Stat(path); err == nil && os.SameFile(in, out) {
			return exit.UsageErrorf("--output is %s, which is read, too: the archive would take its place", x.output)
		}
	}
	return nil
}

func (x *exporting) addDecisions(cmd *cobra.Command, export *evidence.Export) error {
	if slices.Contains(x.from, fromCluster) {
		about := managers.Decisions{Limit: explain.MaxDecisions}
		if !x.since.IsZero() {
			about.Since = time.Since(x.since.Time)
		}
		records, err := x.cluster.FetchRecords(cmd, x.asked, about)
		if err != nil {
			return err
		}
		return addRecords(export, records)
	}
	for _, path := range x.from {
		if err := addFile(cmd.InOrStdin(), path, export); err != nil {
			return err
		}
	}
	return nil
}

// addRecords adds records that were read already, as the lines that they were.
func addRecords(export *evidence.Export, records []decision.Record) error {
	encoder := record.NewEncoder()
	for _, r := range records {
		text, err := encoder.AppendLine(nil, r)
		if err != nil {
			return err
		}
		if err := export.AddLine(record.Line{Text: bytes.TrimRight(text, "\n"), Record: r}); err != nil {
			return err
		}
	}
	return nil
}

func addFile(in io.Reader, path string, export *evidence.Export) error {
	f, err := openInput(in, path)
	if err != nil {
		return fmt.Errorf("reading decisions: %w", err)
	}
	defer f.Close()
	if err := record.ReadEachLine(f, export.AddLine); err != nil {
		return fmt.Errorf("reading decisions of %s: %w", path, err)
	}
	return nil
}

func (x *exporting) addPolicies(cmd *cobra.Command, export *evidence.Export) error {
	builtin, err := bundle.ReadBuiltin(x.builtin)
	if err != nil {
		return err
	}
	named, err := policy.LoadBundles(x.bundles)
	if err != nil {
		return err
	}
	export.AddPolicies(append(named, builtin)...)
	if !x.kept && !slices.Contains(x.from, fromCluster) {
		return nil
	}
	config, err := x.cluster.RESTConfig()
	if err != nil {
		return err
	}
	cluster, err := shipped.NewBundles(config, x.manager)
	if err != nil {
		return err
	}
	kept, warnings, err := cluster.KeptBundles(cmd.Context())
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	export.AddPolicies(kept...)
	return nil
}

// writeOutput writes the archive, and tells what is in it.
func (x *exporting) writeOutput(cmd *cobra.Command, m *evidence.Manifest, archive []byte) error {
	out, name := cmd.OutOrStdout(), x.output
	if name == std {
		out, name = cmd.ErrOrStderr(), "the archive"
		if _, err := cmd.OutOrStdout().Write(archive); err != nil {
			return fmt.Errorf("printing the archive: %w", err)
		}
	} else if err := writeFile(name, archive); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	fmt.Fprintf(out, "%s has %s in %s, %s, and %s\n", edit.EscapeText(name), formatCount(m.CountDecisions(), "decision"), formatCount(len(m.Hours), "hour"), describeTimes(m), formatCount(len(m.Policies), "bundle"))
	fmt.Fprintf(out, "its last link is %s\n", cmp.Or(shortLink(m.LastLink()), "none"))
	x.printWarnings(cmd.ErrOrStderr(), m)
	return nil
}

// printWarnings tells what the archive does not show.
func (x *exporting) printWarnings(out io.Writer, m *evidence.Manifest) {
	for _, id := range m.Missing {
		fmt.Fprintf(out, "warning: bundle %s is missing, so its decisions cannot be made again; name it with --bundle\n", edit.EscapeText(bundle.ShortID(id)))
	}
	if m.LeftOut > 0 {
		fmt.Fprintf(out, "warning: %s left out: decisions of bundles in shadow, or of points that this regatta does not know\n", formatCount(m.LeftOut, "line"))
	}
	if x.before != nil {
		if gap := m.GapBefore(x.before); gap != "" {
			fmt.Fprintf(out, "warning: %s\n", gap)
		}
	}
	if x.signer.Key == "" {
		fmt.Fprintln(out, "warning: the archive is not signed, so a holder of it can make another one; sign it with --signing-key")
	}
}

// writeFile writes a file whole or not at all.
func writeFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".audit-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after a rename there is none
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
