// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/keys"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/record"
)

// Stages before those of the gate. Here to fetch means to read a file.
const (
	fetched   gate.Stage = "fetched"
	signature gate.Stage = "verified"
)

// maxShown is how many problems are printed as text.
const maxShown = 10

// verdict is the result of verify.
type verdict struct {
	Path    string         `json:"path"`
	Summary bundle.Summary `json:"bundle,omitzero"`
	gate.Report
}

func (c *commands) newVerifyCommand() *cobra.Command {
	var k kind
	var t keys.Trust
	var active []string
	var records string
	form := output.New(output.Text, output.JSON, output.SARIF, output.GitHub)
	cmd := &cobra.Command{
		Use:   "verify BUNDLE",
		Short: "Go through the gate of a cluster, stage by stage",
		Long: `Verify does to a bundle exactly what a cluster does before it is active, in another
process with the same limits, and prints each stage with its time and its first
problems. A bundle is a folder, a .tar.gz file or a .rego file.

With --records, decisions that were recorded are made again: the bundle is refused
if one of them would be without an answer. With --verification-key, it is refused
unless it is signed.`,
		Example: `  regatta policy verify change-freeze
  regatta policy verify team-rules -n shop --active change-freeze
  regatta policy verify bundle.tar.gz --verification-key key.pub --records decisions.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := t.NewVerification()
			if err != nil {
				return err
			}
			past, err := readRecords(cmd.InOrStdin(), records)
			if err != nil {
				return err
			}
			v := &verdict{Path: args[0]}
			if err := c.admitBundle(cmd, v, &k, by, active, past); err != nil {
				return err
			}
			if err := v.printVerdict(cmd.OutOrStdout(), form.String()); err != nil {
				return err
			}
			if v.Refused != "" {
				return exit.RefusalError(errRefused)
			}
			return nil
		},
	}
	k.addFlags(cmd)
	t.AddFlags(cmd.Flags(), "the bundle")
	form.AddTo(cmd)
	cmd.Flags().StringSliceVar(&active, "active", nil, "bundles that are active already, which this one would join")
	cmd.Flags().StringVar(&records, "records", "", "a file of recorded decisions, as lines of JSON, to make again; - is the standard input")
	return cmd
}

// readRecords reads the records of a file; - is the standard input. Without a path there are none.
func readRecords(in io.Reader, path string) ([]decision.Record, error) {
	switch path {
	case "":
		return nil, nil
	case stdin:
		return record.Read(in)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading records: %w", err)
	}
	defer f.Close()
	records, err := record.Read(f)
	if err != nil {
		return nil, fmt.Errorf("reading records of %s: %w", path, err)
	}
	return records, nil
}

// admitBundle fills in the verdict. An error is not about the bundle.
func (c *commands) admitBundle(cmd *cobra.Command, v *verdict, k *kind, by *bundle.Verification, active []string, past []decision.Record) error {
	start := time.Now()
	b, err := loadBundle(v.Path, by, k.bundleOptions()...)
	var unsigned bundle.SignatureError
	took := gate.Took{Stage: fetched, Duration: time.Since(start)}
	switch ps := refusalProblems(v.Path, prefixProblemPaths(v.Path, err)); {
	case errors.As(err, &unsigned):
		v.Stages = append(v.Stages, gate.Took{Stage: fetched}, gate.Took{Stage: signature, Duration: took.Duration})
		v.Refused, v.Problems = signature, ps
		return nil
	case ps != nil:
		v.Stages = append(v.Stages, took)
		v.Refused, v.Problems = fetched, ps
		return nil
	case err != nil:
		return err
	}
	v.Summary = b.SummarizeContent()
	v.Stages = append(v.Stages, took)
	if by != nil {
		v.Stages = append(v.Stages, gate.Took{Stage: signature})
	}
	builtin := b
	if !k.builtin {
		if builtin, err = bundle.ReadBuiltin(c.builtin); err != nil {
			return err
		}
	}
	set, err := loadAll(active)
	if err != nil {
		return err
	}
	for _, a := range set {
		if a.Name != b.Name || a.Namespace != b.Namespace {
			continue
		}
		if err := b.FollowsActive(a); err != nil {
			v.Refused, v.Problems = signature, module.Problems{{File: v.Path, Row: 1, Col: 1, Code: "sequence_error", Message: err.Error()}}
			v.Stages = append(v.Stages[:1], gate.Took{Stage: signature})
			return nil
		}
	}
	report, err := gate.New(builtin, gate.WithRunner(c.runner)).AdmitBundle(cmd.Context(), b, set, past)
	if err != nil && report.Refused == "" {
		return err
	}
	report.Problems = problemsOf(prefixProblemPaths(v.Path, report.Problems))
	report.Stages = append(v.Stages, report.Stages...)
	v.Report = report
	return nil
}

func (v *verdict) printVerdict(out io.Writer, form string) error {
	switch form {
	case output.JSON:
		return output.PrintJSON(out, v)
	case output.SARIF:
		return output.PrintJSON(out, asSARIF(v.findingMeanings(), v.listFindings()))
	case output.GitHub:
		for _, f := range v.listFindings() {
			printAnnotation(out, f)
		}
		return nil
	}
	for _, s := range v.Stages {
		if s.Stage != v.Refused {
			line := fmt.Sprintf("%-9s ok       %8s  %s", s.Stage, formatDuration(s.Duration), v.stageDetail(s.Stage))
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
	}
	if v.Refused == "" {
		fmt.Fprintf(out, "%s may become active\n", v.Path)
		return nil
	}
	var duration time.Duration
	for _, s := range v.Stages {
		if s.Stage == v.Refused {
			duration = s.Duration
		}
	}
	fmt.Fprintf(out, "%-9s refused  %8s  %s\n", v.Refused, formatDuration(duration), formatCount(len(v.Problems), "problem"))
	for i, p := range v.Problems {
		if i == maxShown {
			fmt.Fprintf(out, "  and %d more\n", len(v.Problems)-maxShown)
			break
		}
		fmt.Fprintf(out, "  %s\n", p)
	}
	return nil
}

func (v *verdict) listFindings() []finding {
	var out []finding
	for _, p := range v.Problems {
		out = append(out, finding{string(v.Refused), bad, p})
	}
	return out
}

// findingMeanings returns the rules of the stages of the gate that were run.
func (v *verdict) findingMeanings() []meaning {
	var out []meaning
	for _, s := range v.Stages {
		out = append(out, meaning{string(s.Stage), "The stage " + string(s.Stage) + " of the gate"})
	}
	return out
}

// stageDetail is the detail to print about a stage that passed.
func (v *verdict) stageDetail(s gate.Stage) string {
	switch s {
	case fetched:
		if v.Summary.Content == "" {
			return "" // not read any further
		}
		return fmt.Sprintf("%s, content %s", formatCount(len(v.Summary.Files), "file"), v.Summary.Content)
	case signature:
		return signatureText(v.Summary.Signature)
	case gate.Packages:
		return formatCount(len(v.Summary.Packages), "package")
	case gate.Tests:
		return formatCount(len(v.Tests), "test")
	case gate.Replay:
		return fmt.Sprintf("%s, %d with another answer", formatCount(v.Replayed, "decision"), len(v.Differences))
	}
	return ""
}

func formatDuration(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
