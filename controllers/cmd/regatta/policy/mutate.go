// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/simulate"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/mutate"
)

// mutation says how much of a mutation test is run.
type mutation struct {
	enabled bool
	minimum float64 // percent
	max     int     // mutants
}

func (m *mutation) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&m.enabled, "mutate", false, "change the rules, one change at a time, and print the changes that no test and no case notices")
	cmd.Flags().Float64Var(&m.minimum, "min-killed", 0, "with --mutate, how many percent of the changes tests and cases must notice at least")
	cmd.Flags().IntVar(&m.max, "max-mutants", 200, "with --mutate, how many changes to try at most; the first ones of each file in turn")
}

func (m mutation) checkFlags(cmd *cobra.Command) error {
	switch {
	case m.minimum < 0 || m.minimum > 100:
		return exit.UsageError(errors.New("--min-killed is a percentage, from 0 to 100"))
	case m.max < 1:
		return exit.UsageErrorf("--max-mutants is %d, want a number of 1 or more", m.max)
	case !m.enabled && (cmd.Flags().Changed("min-killed") || cmd.Flags().Changed("max-mutants")):
		return exit.UsageError(errors.New("--min-killed and --max-mutants are for --mutate"))
	}
	return nil
}

// mutants is the result of a mutation test.
type mutants struct {
	// Killed is how many mutants make a test or a case fail.
	Killed int `json:"killed"`
	// Survived are those that no test and no case notices. Their files are those of the working directory.
	Survived []mutate.Mutant `json:"survived"`
	// Invalid are those that are refused before a test is run. They do not count.
	Invalid []mutate.Mutant `json:"invalid,omitempty"`
	// Untried is how many mutants were left out.
	Untried int `json:"untried,omitempty"`
}

// failureError is an error if tests notice less than is wanted, in percent.
func (m mutants) failureError(minimum float64) error {
	valid := m.Killed + len(m.Survived)
	if minimum == 0 {
		return nil
	}
	if valid == 0 {
		return exit.RefusalErrorf("there is no change that tests and cases could notice, and %g %% are wanted", minimum)
	}
	if percent := 100 * float64(m.Killed) / float64(valid); percent < minimum {
		return exit.RefusalErrorf("tests and cases notice %.1f %% of the changes, and %g %% are wanted", percent, minimum)
	}
	return nil
}

func (m mutants) printText(out io.Writer, verbose bool) {
	for _, s := range m.Survived {
		fmt.Fprintf(out, "%s:%d:%d: no test notices that %s\n", s.File, s.Row, s.Col, s.Change)
	}
	if verbose {
		for _, s := range m.Invalid {
			fmt.Fprintf(out, "%s:%d:%d: it is invalid that %s\n", s.File, s.Row, s.Col, s.Change)
		}
	}
	fmt.Fprintf(out, "mutants: %d of %d killed, %d survived", m.Killed, m.Killed+len(m.Survived), len(m.Survived))
	if len(m.Invalid) > 0 {
		fmt.Fprintf(out, ", %d invalid", len(m.Invalid))
	}
	if m.Untried > 0 {
		fmt.Fprintf(out, ", %d not tried", m.Untried)
	}
	fmt.Fprintln(out)
}

// runMutants tests each mutant of a bundle whose own tests and cases pass. With an error it returns what was found until then.
func (c *commands) runMutants(cmd *cobra.Command, t trial, b, builtin *bundle.Bundle) (out mutants, err error) {
	all := mutate.ListMutants(b)
	out.Survived = []mutate.Mutant{}
	chosen := chooseMutants(all, t.mutation.max)
	out.Untried = len(all) - len(chosen)
	var progress *simulate.Progress
	if stderr := cmd.ErrOrStderr(); output.IsTerminal(stderr) {
		progress = simulate.NewProgress(stderr, time.Now)
	}
	defer progress.ClearLine()
	for i, m := range chosen {
		progress.ReportCount("mutants tested", i, len(chosen))
		result, err := c.testMutant(cmd, t, m, b, builtin)
		if cmd.Context().Err() != nil {
			err = fmt.Errorf("testing mutants: %w", context.Cause(cmd.Context()))
		}
		if err != nil {
			out.Untried += len(chosen) - i
			return out, err
		}
		m.File = bundleFilePath(t.path, m.File)
		switch result {
		case mutantKilled:
			out.Killed++
		case mutantSurvived:
			out.Survived = append(out.Survived, m)
		default:
			out.Invalid = append(out.Invalid, m)
		}
	}
	return out, nil
}

// chooseMutants takes at most max mutants: one of each file in turn, so that each file has some.
func chooseMutants(all []mutate.Mutant, maximum int) []mutate.Mutant {
	if len(all) <= maximum {
		return all
	}
	rank, counts := make([]int, len(all)), map[string]int{}
	for i, m := range all {
		rank[i] = counts[m.File]
		counts[m.File]++
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank[a] - rank[b] })
	order = order[:maximum]
	slices.Sort(order)
	chosen := make([]mutate.Mutant, len(order))
	for i, at := range order {
		chosen[i] = all[at]
	}
	return chosen
}

// mutantResult is what the tests say of a mutant.
type mutantResult int

const (
	mutantInvalid mutantResult = iota
	mutantKilled
	mutantSurvived
)

func (c *commands) testMutant(cmd *cobra.Command, t trial, m mutate.Mutant, b, builtin *bundle.Bundle) (mutantResult, error) {
	mutated, err := m.MutateBundle(b)
	if err != nil {
		return mutantInvalid, nil //nolint:nilerr // the change makes no Rego
	}
	if b == builtin {
		builtin = mutated
	}
	report, err := gate.New(builtin, gate.WithRunner(c.runner)).AdmitBundle(cmd.Context(), mutated, nil, nil)
	switch refused := new(gate.RefusedError); {
	case errors.As(err, &refused) && (refused.Stage == gate.Tests || refused.LimitedIn == gate.Tests):
		return mutantKilled, nil // or its tests take too long, which a user would notice too
	case errors.As(err, &refused):
		return mutantInvalid, nil
	case err != nil:
		return mutantInvalid, fmt.Errorf("testing a mutant of %s:%d:%d: %w", m.File, m.Row, m.Col, err)
	}
	if slices.ContainsFunc(report.Tests, func(r gate.Test) bool { return !r.Passed && !r.Skipped }) {
		return mutantKilled, nil
	}
	outcomes, err := c.runCases(cmd, t, mutated, builtin)
	if err != nil {
		return mutantInvalid, err
	}
	if slices.ContainsFunc(outcomes, func(o caseOutcome) bool { return len(o.Problems) > 0 }) {
		return mutantKilled, nil
	}
	return mutantSurvived, nil
}
