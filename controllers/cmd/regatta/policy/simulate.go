// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/simulate"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// simulating is one run of the command simulate.
type simulating struct {
	kind       kind
	source     simulate.Source
	bundles    []string
	active     []string
	at         string
	until      string
	step       time.Duration
	readyAfter time.Duration
	patience   time.Duration
	fail       []string
	by         string
	form       *output.Form
	all        bool
	gates      features.Gates
}

func (c *commands) newSimulateCommand() *cobra.Command {
	s := simulating{form: output.New(output.Text, output.JSON)}
	var broken error // known when the command runs
	if s.gates, broken = features.New(); broken != nil {
		return &cobra.Command{Use: "simulate", RunE: func(*cobra.Command, []string) error { return broken }}
	}
	cmd := &cobra.Command{
		Use:   "simulate --at TIME [--bundle BUNDLE]...",
		Short: "Simulate a rollout, step by step, without a cluster",
		Long: `Simulate runs the rollout of a CloneSet, Advanced StatefulSet or Advanced DaemonSet:
who is moved in which wave, who waits for what, and how it ends. The controller, the
engine and the policies are those of a cluster; the API server, the nodes and the time
are made up. Time is moved to when something happens: a pod becomes ready, or a hold ends.

The fleet is made up by --replicas, --zones, --label and --budget, or it is a dump:

  kubectl get clonesets,asts,ads,pods,nodes,controllerrevisions,podunavailablebudgets -o yaml > fleet.yaml

With --all each workload of the dump is simulated on its own: a bar for each shows when
its pods are updated and when it is held, and below it by which rules and budgets.

PodUnavailableBudgets, and rules in extend.protection, refuse deletes and updates of
pods as they do in a cluster: by the same webhooks, asked about the same requests.

Whatever policies say, every write is checked: never fewer pods available, never
more pods, never more of them updated than the workload allows, never fewer pods of
a budget available than it wants because of the write, and none moved that is held.
A broken promise, and a rollout that is stuck, end with 1.

Other workloads do not move, though their pods count for budgets that have them.
Webhooks of others, and of kinds other than pods, take no part. A pod
that is deleted is gone at once, a lifecycle hook is answered at once, and labels
that the template does not have are gone with their pod. The same input
prints the same bytes. Where standard error is a terminal, a line there tells how
far it is, and is gone in the end.`,
		Example: `  regatta policy simulate --at 2026-12-24T10:00Z --bundle change-freeze
  regatta policy simulate --at 2026-12-21T10:00Z --zones a=10,b=10,c=10 --max-unavailable 20% --bundle one-zone-at-a-time
  regatta policy simulate --at 2026-12-21T10:00Z --pod-update-policy ReCreate --max-unavailable 50% --budget 20%
  regatta policy simulate --at 2026-12-21T10:00Z --fleet fleet.yaml --name web --update main=web:2 --fail 1
  regatta policy simulate --at 2026-12-21T10:00Z --fleet fleet.yaml --all --bundle change-freeze`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runSimulate(cmd, s) },
	}
	f := cmd.Flags()
	f.StringVar(&s.at, "at", "", "when the rollout begins, such as 2026-12-24T10:00Z")
	f.StringSliceVarP(&s.bundles, "bundle", "b", nil, "bundles to try: a folder, a .tar.gz file or a .rego file")
	f.StringSliceVar(&s.active, "active", nil, "platform bundles that are active besides")
	s.kind.addFlags(cmd)
	f.StringVar(&s.source.Workload, "workload", "", "a file with the workload as it is applied, and PodUnavailableBudgets with it")
	f.StringSliceVar(&s.source.Fleet, "fleet", nil, "files with what there is: workloads, pods, nodes, controllerrevisions, claims, PodUnavailableBudgets, namespaces")
	f.StringVar(&s.source.Name, "name", "", "the workload that is meant; web if it is made up")
	f.BoolVar(&s.all, "all", false, "simulate each workload of --fleet on its own, and print a bar for each")
	f.StringSliceVar(&s.source.Zones, "zones", nil, "pods to make up in each zone, such as a=10,b=10")
	f.StringSliceVar(&s.source.Labels, "label", nil, "labels of pods that are made up, such as tier=gold:5")
	f.IntVar(&s.source.Replicas, "replicas", -1, "how many pods the workload has; as it says, all of the zones, or 10")
	f.StringVar(&s.source.MaxUnavailable, "max-unavailable", "", "in place of what the workload says")
	f.StringVar(&s.source.MaxSurge, "max-surge", "", "in place of what the workload says")
	f.StringVar(&s.source.Partition, "partition", "", "in place of what the workload says")
	f.StringVar(&s.source.Policy, "pod-update-policy", "", "in place of what the workload says: ReCreate, InPlaceIfPossible or InPlaceOnly")
	f.StringSliceVar(&s.source.Update, "update", nil, "what changes, as CONTAINER=IMAGE; pods that are made up have another image without it")
	f.StringVar(&s.source.Budget, "budget", "", "a PodUnavailableBudget of the workload: how many pods may be unavailable, as 25% or max=2, or must be available, as min=3")
	f.Var(gates{s.gates}, "feature-gates", "gates as the manager takes them, such as PodUnavailableBudgetUpdateGate=true")
	f.DurationVar(&s.readyAfter, "ready-after", 30*time.Second, "how long pods take to become ready")
	f.StringSliceVar(&s.fail, "fail", nil, "pods that never become ready once they are moved: names, or a number for the first so many")
	f.DurationVar(&s.step, "step", 0, "let time pass in steps; by what happens if 0")
	f.StringVar(&s.until, "until", "done", "how far to go: done, a time, or a number of waves")
	f.DurationVar(&s.patience, "patience", 366*24*time.Hour, "how long nothing may happen before it counts as stuck")
	f.StringVar(&s.by, "by", "zone", "how to count the pods of a wave: by zone or by a label")
	f.Int64Var(&s.source.Seed, "seed", 1, "what names of pods are drawn with")
	s.form.AddTo(cmd)
	_ = cmd.MarkFlagRequired("at") // it is there
	return cmd
}

func (c *commands) runSimulate(cmd *cobra.Command, s simulating) error {
	begin, err := parseTime("--at", s.at)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("replicas") && s.source.Replicas < 0 {
		return exit.UsageError(errors.New("--replicas is a number of at least 0"))
	}
	opts, err := s.simulationOptions(begin)
	if err != nil {
		return err
	}
	set, err := loadAll(s.active)
	if err != nil {
		return err
	}
	if s.kind.builtin {
		return exit.UsageError(errors.New("--builtin: built-in policies are what the others are tried with"))
	}
	for _, path := range s.bundles {
		b, err := loadBundle(path, nil, s.kind.bundleOptions()...)
		if err != nil {
			return wrapRefusal(prefixProblemPaths(path, err))
		}
		set = append(set, b)
	}
	s.source.Namespace, s.source.Gates = s.kind.namespace, s.gates
	if stderr := cmd.ErrOrStderr(); output.IsTerminal(stderr) {
		s.source.Progress = simulate.NewProgress(stderr, time.Now)
	}
	run := &simulator{builtin: c.builtin, set: set, begin: begin, options: opts}
	if s.all {
		return s.simulateAll(cmd, run)
	}
	report, err := run.simulateWorkload(cmd, s.source)
	if err != nil {
		return err
	}
	if s.form.String() == output.JSON {
		err = output.PrintJSON(cmd.OutOrStdout(), report)
	} else {
		err = simulate.Text{Report: report, By: s.by}.WriteReport(cmd.OutOrStdout())
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return refuseOutcome(report)
}

// simulator simulates one workload after the other with the same policies, which it compiles once.
type simulator struct {
	builtin  fs.FS
	set      bundle.Set
	begin    time.Time
	options  []simulation.Option
	compiled []engine.CompiledPolicies
}

// simulateWorkload simulates the rollout of one workload.
func (s *simulator) simulateWorkload(cmd *cobra.Command, source simulate.Source) (simulation.Report, error) {
	fleet, notes, err := source.LoadFleet(cmd.Context(), s.builtin, s.begin)
	source.Progress.ClearLine()
	var misuse simulate.Misuse
	if errors.As(err, &misuse) {
		return simulation.Report{}, exit.UsageError(err)
	}
	if err != nil {
		return simulation.Report{}, err
	}
	for _, n := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", n)
	}
	options := append(slices.Clone(s.options), simulation.WithCompiled(s.compiled...), simulation.WithProgress(source.Progress.ReportRollout))
	run, err := simulation.New(s.builtin, s.set, fleet, s.begin, options...)
	if err != nil {
		return simulation.Report{}, wrapRefusal(err)
	}
	defer run.Close()
	s.compiled = run.CompiledPolicies()
	report, err := run.Run(cmd.Context())
	source.Progress.ClearLine()
	return report, err
}

// simulateAll simulates each workload of the fleet on its own, and prints a bar for each. A workload that cannot be
// simulated does not keep the others from it: its error is a warning, and the first one is returned at the end.
func (s simulating) simulateAll(cmd *cobra.Command, run *simulator) error {
	if len(s.source.Fleet) == 0 || s.source.Workload != "" {
		return exit.UsageError(errors.New("--all is about the workloads of --fleet, and not about --workload"))
	}
	var err error
	if s.source.Objects, err = s.source.ReadObjects(); err != nil {
		return err
	}
	s.source.Fleet = nil // it is read once: it may be the standard input
	found, err := s.source.ListWorkloads()
	if err != nil {
		return err
	}
	bars := simulate.Bars{Reports: []simulation.Report{}}
	var failure error
	for i := range found {
		source := s.source
		source.Only = &found[i]
		report, err := run.simulateWorkload(cmd, source)
		var none simulate.NoPodsError
		if errors.As(err, &none) {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", none)
			continue
		}
		if err != nil {
			err = fmt.Errorf("%s %s/%s: %w", found[i].Kind, found[i].Namespace, found[i].Name, err)
			if cmd.Context().Err() != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "warning: it is not simulated:", err)
			failure = cmp.Or(failure, err)
			continue
		}
		bars.Reports = append(bars.Reports, report)
	}
	switch {
	case len(bars.Reports) == 0 && failure != nil:
		return failure
	case len(bars.Reports) == 0:
		return exit.UsageError(errors.New("--fleet has no workload with pods that can be simulated"))
	case s.form.String() == output.JSON:
		err = output.PrintJSON(cmd.OutOrStdout(), bars.Reports)
	default:
		err = bars.WriteBars(cmd.OutOrStdout())
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	for _, report := range bars.Reports {
		if err := refuseOutcome(report); err != nil {
			return fmt.Errorf("%s %s/%s: %w", report.Workload.Kind, report.Workload.Namespace, report.Workload.Name, err)
		}
	}
	return failure
}

// refuseOutcome returns an error if a rollout broke a promise or is stuck.
func refuseOutcome(report simulation.Report) error {
	switch {
	case len(report.Violations) > 0:
		return exit.RefusalError(fmt.Errorf("%s broken", formatCount(len(report.Violations), "promise")))
	case report.End.How == simulation.Stuck:
		return exit.RefusalError(errors.New("the rollout is stuck"))
	}
	return nil
}

// simulationOptions returns the options of the run.
func (s simulating) simulationOptions(at time.Time) ([]simulation.Option, error) {
	for name, d := range map[string]time.Duration{"--ready-after": s.readyAfter, "--step": s.step, "--patience": s.patience} {
		if d < 0 {
			return nil, exit.UsageError(fmt.Errorf("%s is a duration of at least 0", name))
		}
	}
	opts := []simulation.Option{
		simulation.WithReadyAfter(s.readyAfter), simulation.WithStep(s.step), simulation.WithPatience(s.patience), simulation.WithSeed(s.source.Seed), simulation.WithGates(s.gates),
	}
	var names []string
	for _, v := range s.fail {
		if n, err := strconv.Atoi(v); err == nil {
			opts = append(opts, simulation.WithFailures(n))
		} else {
			names = append(names, v)
		}
	}
	opts = append(opts, simulation.WithBroken(names...))
	if s.until == "done" {
		return opts, nil
	}
	if n, err := strconv.Atoi(s.until); err == nil {
		if n < 1 {
			return nil, exit.UsageError(errors.New("--until is done, a time, or a number of waves of at least 1"))
		}
		return append(opts, simulation.WithWaves(n)), nil
	}
	until, err := parseTime("--until", s.until)
	if err == nil && !until.After(at) {
		err = exit.UsageError(errors.New("--until is a time after --at"))
	}
	return append(opts, simulation.WithUntil(until)), err
}

// gates reads the flag of that name. If a gate is mistyped, the error lists the gates that exist: a
// user of this command may not have the chart's README at hand.
type gates struct{ features.Gates }

// Set implements pflag.Value.
func (g gates) Set(value string) error {
	err := g.Gates.Set(value)
	if err == nil {
		return nil
	}
	var known []string
	for f := range g.GetAll() {
		known = append(known, string(f))
	}
	slices.Sort(known)
	return fmt.Errorf("%w; known are %s", err, strings.Join(known, ", "))
}

// parseTime reads a time, with or without seconds.
func parseTime(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, exit.UsageError(fmt.Errorf("%s has %q, which is no time such as 2026-12-24T10:00Z", flag, text))
}
