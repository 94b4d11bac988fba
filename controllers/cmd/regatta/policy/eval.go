// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/document"
	"github.com/regatta-sh/regatta/engine/record"
)

func (c *commands) newEvalCommand() *cobra.Command {
	var input, namespace string
	var paths []string
	cmd := &cobra.Command{
		Use:   "eval POINT",
		Short: "Ask a decision point",
		Long: `Eval asks a decision point, such as rollout/plan, and prints the answer and the
rules that took part. The input is JSON or YAML; what it leaves out is zero.

Points are: ` + pointNames(),
		Example: `  regatta policy eval rollout/plan -i question.json --bundle change-freeze
  echo '{update: 3, strategy: {type: RollingUpdate}}' | regatta policy eval rollout/plan`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, ok := catalog.FindPoint(decision.Name(args[0]))
			if !ok {
				return exit.UsageError(fmt.Errorf("there is no decision point %s; there are %s", args[0], pointNames()))
			}
			text, err := readInput(cmd.InOrStdin(), input)
			if err != nil {
				return err
			}
			in, err := cases.DecodeInput(p, text)
			if err != nil {
				return err
			}
			e, err := engine.New(c.builtin)
			if err != nil {
				return err
			}
			defer e.Close()
			set, err := loadAll(paths)
			if err != nil {
				return err
			}
			if err := e.ActivateBundles(cmd.Context(), set); err != nil {
				return wrapRefusal(err)
			}
			subject := decision.Subject{Kind: "Input", Namespace: namespace, Name: input}
			_, r := engine.DecideOn(cmd.Context(), e, e.ActiveSnapshot(), p, subject, in)
			return printDecision(cmd.OutOrStdout(), e, r)
		},
	}
	cmd.Flags().StringVarP(&input, "input", "i", "-", "a file with the question; - is the standard input")
	cmd.Flags().StringSliceVarP(&paths, "bundle", "b", nil, "bundles that are active besides the built-in one")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "the namespace of the workload asked about")
	return cmd
}

func pointNames() string {
	var out []string
	for _, p := range catalog.All() {
		out = append(out, string(p.Name))
	}
	return strings.Join(out, ", ")
}

func readInput(in io.Reader, path string) ([]byte, error) {
	var text []byte
	var err error
	if path == stdin {
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the input: %w", err)
	}
	if document.CheckJSON(text) == nil {
		return text, nil
	}
	text, err = document.FromYAML(text)
	var at document.Error
	if errors.As(err, &at) {
		err = fmt.Errorf("reading the input: line %d: %w", at.Row, err)
	}
	return text, err
}

// printDecision prints a decision. One that was not made is an error.
func printDecision(out io.Writer, e *engine.Engine, r decision.Record) error {
	answer := struct {
		Output any           `json:"output"`
		Why    record.Answer `json:"why"`
	}{r.Output, record.ExplainDecision(e, r)}
	if err := output.PrintJSON(out, answer); err != nil {
		return fmt.Errorf("printing the decision: %w", err)
	}
	if r.Outcome != decision.Decided {
		return exit.RefusalError(fmt.Errorf("there was no decision (%s), so this is the fallback: %s", r.Outcome, r.Error))
	}
	return nil
}
