// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/prove"
	"github.com/regatta-sh/regatta/policies"
)

// proving is one run of the command prove.
type proving struct {
	kind       kind
	old        string
	equal      bool
	sameUnless string
	neverFails bool
	points     []string
	from       string
	write      string
	deep       bool
	limits     prove.Limits
	form       *output.Form
}

func (c *commands) newProveCommand() *cobra.Command {
	p := proving{limits: prove.DefaultLimits(), form: output.New(output.Text, output.JSON, output.JUnit, output.SARIF, output.GitHub)}
	cmd := &cobra.Command{
		Use:   "prove (--never-looser-than OLD | --equal OLD | --same-unless EXPR OLD | --never-fails) NEW",
		Short: "Search for an input for which a bundle answers less strictly than another one",
		Long: `Prove searches for an input for which NEW answers less strictly than OLD, or does
not decide what OLD decides. It is for changes that should only be stricter, or
should change nothing, such as a bundle that is written anew.

It varies the facts that rules of both bundles read, over the values that these
compare them with and those beside them. Lists and maps have up to 2 elements, or
3 with --deep. Everything else stays as it is in cases of the bundles, cases of
the built-in policies, and the recorded decisions of --from. If that makes no more
inputs than --worlds, it tries all of them; otherwise it draws that many, mostly
ones that fit a rule. The same seed draws the same inputs.

What it finds was decided twice by the engine with the same answers, and is made
as small as it can. It is printed as a case, and --write puts it into the folder
cases of a bundle, where "regatta policy test" runs it.

If it finds nothing, that is true of the inputs that it tried, and is no statement
about others, even where it tried all that the values make: a rule may depend on
values that it does not know. What a function makes of facts, such as a text that
sprintf puts together, is listed as not varied. With -n the namespace of the input
is that one, and does not vary. How long a decision
takes, and how much memory, is not considered: inputs with a late answer are
counted and do not count. It ends with an error if it could not search each point,
or if answers to the same input were not the same each time. Ctrl-C ends the search
with a report of what was tried until then, and with an error.

  --never-looser-than OLD   NEW is never looser, and decides where OLD decides
  --equal OLD               no answer differs
  --same-unless EXPR OLD    no answer differs, unless EXPR, a condition on the
                            input in Rego, is true; where it fails to evaluate,
                            it is not true, so a difference there counts
  --never-fails             NEW decides each input that the built-in policies decide`,
		Example: `  regatta policy prove --never-looser-than v1.tar.gz change-freeze
  regatta policy prove --equal change-freeze rewritten --point rollout/plan
  regatta policy prove --same-unless 'input.workload.namespace == "dev"' v1.tar.gz v2.tar.gz
  regatta policy prove --never-fails change-freeze --from last-hour.jsonl`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return c.runProve(cmd, p, args) },
	}
	p.kind.addFlags(cmd)
	p.form.AddTo(cmd)
	f := cmd.Flags()
	f.StringVar(&p.old, "never-looser-than", "", "the bundle that NEW must not be looser than: a folder, a .tar.gz file or a .rego file")
	f.BoolVar(&p.equal, "equal", false, "any difference between OLD and NEW counts")
	f.StringVar(&p.sameUnless, "same-unless", "", "any difference between OLD and NEW counts, unless this condition in Rego is true of the input")
	f.BoolVar(&p.neverFails, "never-fails", false, "that NEW does not decide counts")
	f.StringSliceVar(&p.points, "point", nil, "decision points to search; all that the bundles take part in if none is named")
	f.StringVar(&p.from, "from", "", "a file of recorded decisions whose inputs are varied too, as lines of JSON; - is the standard input")
	f.StringVar(&p.write, "write", "", "a folder of a bundle to write the case to, below its folder cases")
	f.IntVar(&p.limits.Worlds, "worlds", p.limits.Worlds, fmt.Sprintf("how many inputs to try at each point, %d at most", prove.MaxWorlds))
	f.BoolVar(&p.deep, "deep", false, "lists and maps have up to 3 elements")
	f.Uint64Var(&p.limits.Seed, "seed", p.limits.Seed, "the same seed draws the same inputs")
	f.DurationVar(&p.limits.Timeout, "timeout", p.limits.Timeout, "how long to search at most")
	cmd.MarkFlagsOneRequired("never-looser-than", "equal", "same-unless", "never-fails")
	cmd.MarkFlagsMutuallyExclusive("never-looser-than", "equal", "same-unless", "never-fails")
	return cmd
}

// findPaths says which bundles are compared; old is empty if there is none.
func (p *proving) findPaths(cmd *cobra.Command, args []string) (old, now string, err error) {
	two := p.equal || cmd.Flags().Changed("same-unless")
	switch {
	case cmd.Flags().Changed("same-unless") && strings.TrimSpace(p.sameUnless) == "":
		return "", "", exit.UsageError(errors.New("--same-unless is empty, want a condition such as 'input.workload.namespace == \"dev\"', or --equal"))
	case two && len(args) != 2:
		return "", "", exit.UsageError(errors.New("--equal and --same-unless need two bundles: OLD NEW"))
	case !two && len(args) != 1:
		return "", "", exit.UsageError(errors.New("--never-looser-than OLD and --never-fails need one bundle: NEW"))
	case p.limits.Worlds < 1 || p.limits.Worlds > prove.MaxWorlds:
		return "", "", exit.UsageErrorf("--worlds is %d, want a number from 1 to %d", p.limits.Worlds, prove.MaxWorlds)
	case p.limits.Timeout <= 0:
		return "", "", exit.UsageError(errors.New("--timeout is a duration of more than 0"))
	}
	for _, name := range p.points {
		if _, ok := catalog.FindPoint(decision.Name(name)); !ok {
			return "", "", exit.UsageErrorf("--point has %q, which is no decision point; there are %s", name, pointNames())
		}
	}
	if two {
		return args[0], args[1], nil
	}
	return p.old, args[0], nil
}

func (p *proving) searchMode() prove.Mode {
	switch {
	case p.neverFails:
		return prove.NeverFails
	case p.equal || p.sameUnless != "":
		return prove.Equal
	}
	return prove.NeverLooser
}

func (c *commands) runProve(cmd *cobra.Command, p proving, args []string) error {
	oldPath, newPath, err := p.findPaths(cmd, args)
	if err != nil {
		return err
	}
	q := prove.Question{Mode: p.searchMode(), Unless: p.sameUnless, Namespace: p.kind.namespace, Limits: p.limits}
	q.Limits.Elements = 2
	if p.deep {
		q.Limits.Elements = 3
	}
	for _, name := range p.points {
		q.Points = append(q.Points, decision.Name(name))
	}
	var now, old *bundle.Bundle
	if now, q.New, err = c.admitSide(cmd, newPath, &p.kind, ""); err != nil {
		return err
	}
	if q.Mode != prove.NeverFails {
		if old, q.Old, err = c.admitSide(cmd, oldPath, &p.kind, now.Name); err != nil {
			return err
		}
		if !p.kind.builtin {
			q.Old.Builtin = q.New.Builtin // the same, so that one engine has both
		}
	}
	if q.Cases, err = readCases(newPath, oldPath); err != nil {
		return err
	}
	if q.Records, err = readRecords(cmd.InOrStdin(), p.from); err != nil {
		return err
	}
	report, err := prove.FindCounterexample(cmd.Context(), q)
	var condition prove.ConditionError
	if errors.As(err, &condition) {
		return exit.UsageErrorf("--same-unless: %w", err)
	}
	if err != nil {
		return wrapRefusal(prefixProblemPaths(newPath, err))
	}
	shown := proved{Report: report, oldPath: oldPath, newPath: newPath, old: old, now: now, elements: q.Limits.Elements}
	var unwritten error
	if p.write != "" && report.Found != nil {
		shown.Written, unwritten = writeCounterexample(cmd, q, report.Found, p.write)
	}
	if err := shown.printReport(cmd.OutOrStdout(), p.form.String()); err != nil {
		return err
	}
	if unwritten != nil {
		return exit.RefusalErrorf("there is a counterexample, which is not written: %v", unwritten)
	}
	return shown.failureError()
}

// admitSide reads a bundle and sends it through the gate. The bundle gets a name if that is not empty.
func (c *commands) admitSide(cmd *cobra.Command, path string, k *kind, name string) (*bundle.Bundle, prove.Side, error) {
	b, builtin, err := c.loadWithBuiltin(path, k)
	if err != nil {
		return nil, prove.Side{}, err
	}
	if name != "" {
		b.Name = name // both take the same place
	}
	if _, err := gate.New(builtin, gate.WithRunner(c.runner)).AdmitBundle(cmd.Context(), b, nil, nil); err != nil {
		return nil, prove.Side{}, wrapRefusal(prefixProblemPaths(path, err))
	}
	if k.builtin {
		return b, prove.Side{Builtin: b}, nil
	}
	return b, prove.Side{Builtin: builtin, Set: bundle.Set{b}}, nil
}

// readCases reads the cases of bundles that are folders, and then those of the built-in policies.
func readCases(paths ...string) ([]cases.File, error) {
	var out []cases.File
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue
		}
		files, err := cases.Read(os.DirFS(path))
		if err != nil {
			return nil, wrapRefusal(prefixProblemPaths(path, err))
		}
		out = append(out, files...)
	}
	files, err := cases.Read(policies.Cases)
	return append(out, files...), err
}

// writeCounterexample writes a case below the folder cases of a folder, and returns its path.
func writeCounterexample(cmd *cobra.Command, q prove.Question, found *prove.Counterexample, folder string) (string, error) {
	text, err := found.WriteCase()
	if err != nil {
		return "", err
	}
	if err := prove.CheckCase(cmd.Context(), q, text); err != nil {
		return "", err
	}
	name := filepath.Join(folder, "cases", "counterexample-"+strings.ReplaceAll(string(found.Point), "/", "-")+".yaml")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", fmt.Errorf("writing the case: %w", err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", exit.UsageErrorf("--write: %s is there already; rename or delete it", name)
	}
	if err != nil {
		return "", fmt.Errorf("writing the case: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("writing the case: %w", err)
	}
	return name, nil
}

// proved prints the report of a search.
type proved struct {
	*prove.Report
	Written string `json:"written,omitempty"`

	oldPath, newPath string
	old, now         *bundle.Bundle
	elements         int
}

// failureError is an error if there is a counterexample, or if there is no result.
func (p proved) failureError() error {
	if p.Found != nil {
		return exit.RefusalErrorf("there is a counterexample: %s at %s", p.Found.Kind, p.Found.Point)
	}
	if p.Interrupted {
		return fmt.Errorf("%s, so there is no result", p.Stopped)
	}
	if len(p.Points) == 0 {
		return errors.New("the bundles take part in no decision point that is asked about, so nothing was tried")
	}
	for _, r := range p.Points {
		if r.Tried == 0 {
			return fmt.Errorf("no input of %s could be tried, so there is no result", r.Point)
		}
	}
	for _, r := range p.Points {
		if r.Unstable > 0 {
			return fmt.Errorf("answers of %s to the same input were not the same each time, so there is no result", r.Point)
		}
	}
	if p.Stopped != "" {
		return fmt.Errorf("%s before all was searched: raise --timeout, or search fewer --worlds or a --point", p.Stopped)
	}
	return nil
}

func (p proved) printReport(out io.Writer, form string) error {
	switch form {
	case output.JSON:
		return output.PrintJSON(out, p)
	case output.JUnit:
		return printJUnit(out, p.newJUnitSuite())
	case output.SARIF:
		return output.PrintJSON(out, asSARIF(counterexampleMeanings(), p.listFindings()))
	case output.GitHub:
		for _, f := range p.listFindings() {
			printAnnotation(out, f)
		}
		return nil
	}
	return p.writeText(out)
}
