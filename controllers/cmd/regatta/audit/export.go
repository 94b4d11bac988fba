// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

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
}

// fromCluster is the value of --from for the managers of a cluster.
const fromCluster = "cluster"

func newExportCommand(builtin fs.FS) *cobra.Command {
	x := exporting{builtin: builtin, since: moment{clock: time.Now}, until: moment{clock: time.Now}, cluster: target.NewCluster().WithoutNamespace()}
	cmd := &cobra.Command{
		Use:   "export --from (FILE... | cluster) -o ARCHIVE",
		Short: "Put decisions and the policies that made them into one signed archive",
		Long: `Export puts decisions into an archive, hour by hour, with the bundles that made them. The
hours are a chain of hashes, so that none can be changed, removed or added later. With
--after, the chain goes on from the archive that was exported before, so that a missing
archive is seen, too. With --signing-key, the archive is signed as OPA signs bundles.

Decisions are those of decision logs, in files, or those that the managers of a cluster
remember. Managers remember their latest decisions only: evidence that is to be complete
comes from the logs of all replicas. Secrets are masked as they are in the logs.

The bundles are those that the cluster keeps (with --from cluster, or --kept-bundles), those
of --bundle, and the built-in ones of this program. A decision whose bundle is in none of
them is exported and cannot be made again: a warning tells which bundle that is.

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
	if len(m.Hours) == 0 {
		return errors.New("no decision was found, so nothing is exported")
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
	if x.after != "" {
		f, err := os.Open(x.after)
		if err != nil {
			return nil, fmt.Errorf("reading the archive before: %w", err)
		}
		defer f.Close()
		m, err := evidence.ReadManifest(f)
		if err != nil {
			return nil, wrapRefusal(fmt.Errorf("reading the archive before: %s: %w", x.after, err))
		}
		if link := m.LastLink(); link != "" {
			opts = append(opts, evidence.ContinueChain(link))
		}
	}
	return opts, nil
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
		if err := export.AddDecision(bytes.TrimRight(text, "\n"), r); err != nil {
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
	if err := record.ReadEachLine(f, export.AddDecision); err != nil {
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
	} else if err := os.WriteFile(name, archive, 0o644); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	first, last := m.Hours[0].Start, m.Hours[len(m.Hours)-1].Start.Add(time.Hour)
	fmt.Fprintf(out, "%s has %s in %s, between %s and %s UTC, and %s\n", name, formatCount(m.CountDecisions(), "decision"), formatCount(len(m.Hours), "hour"),
		formatTime(first), formatTime(last), formatCount(len(m.Policies), "bundle"))
	fmt.Fprintf(out, "its last link is sha256:%s\n", m.LastLink())
	for _, id := range m.Missing {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: bundle %s is missing, so its decisions cannot be made again; name it with --bundle\n", bundle.ShortID(id))
	}
	if x.signer.Key == "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: the archive is not signed, so whoever has it can make another one; sign it with --signing-key")
	}
	return nil
}
