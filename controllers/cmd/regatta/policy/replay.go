// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/replay"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/shipped"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// replaying is one run of the command replay.
type replaying struct {
	kind      kind
	from      string
	cluster   *target.Cluster
	asked     managers.Flags
	manager   string // the namespace of the manager
	since     time.Duration
	limit     int
	bundle    string
	baseline  string
	as        string
	active    []string
	points    []string
	failOn    []string
	pace      compare.Pace
	samples   int
	noLatency bool
	form      *output.Form
}

func (c *commands) newReplayCommand() *cobra.Command {
	r := replaying{cluster: target.NewCluster().WithoutNamespace(), pace: compare.DefaultPace(), form: output.New(output.Text, output.JSON, output.JUnit, output.SARIF, output.GitHub)}
	cmd := &cobra.Command{
		Use:   "replay --from (FILE | cluster) --bundle BUNDLE",
		Short: "Make recorded decisions again with a bundle that is to come",
		Long: `Replay makes recorded decisions again with the built-in policies, the bundles that
are active and the one that is to come, and tells what would be decided
differently: stricter, looser, otherwise, not at all, or slower. What counts as
stricter is said at each decision point; a decision that is stricter in one part
and looser in another is looser.

Decisions are those of a file, which are compared with what it says, or those that
the managers of a cluster remember, which are compared with what the bundles that
the cluster enforces now say: a bundle that is gone since then is not your doing.
You need the ClusterRole kruise-decisions-reader for that, in the whole cluster.

The bundle goes through the gate first. Everything that is printed, but for the
latency, is the same whenever the same records are replayed.`,
		Example: `  regatta policy replay --from decisions.jsonl --bundle change-freeze
  regatta policy replay --from cluster --since 1h --bundle change-freeze --active one-zone
  regatta policy replay --from decisions.jsonl --bundle v2.tar.gz --baseline v1.tar.gz --fail-on looser,error`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runReplay(cmd, r) },
	}
	r.cluster.AddFlags(cmd.Flags())
	r.asked.AddFlags(cmd.Flags())
	r.kind.addFlags(cmd)
	r.form.AddTo(cmd)
	f := cmd.Flags()
	f.StringVar(&r.from, "from", "", "a file of recorded decisions, as lines of JSON; - is the standard input, and cluster what the managers remember")
	f.StringVar(&r.manager, "manager-namespace", "kruise-system", "namespace of the manager, where bundles of the platform are kept")
	f.DurationVar(&r.since, "since", time.Hour, "with --from cluster: how long ago the first decision may have been")
	f.IntVar(&r.limit, "limit", explain.MaxDecisions, "with --from cluster: how many decisions to take from each manager, the latest ones")
	f.StringVar(&r.bundle, "bundle", "", "the bundle that is to come: a folder, a .tar.gz file or a .rego file")
	f.StringVar(&r.baseline, "baseline", "", "what to compare with: recorded, for what the records say; active, for the bundles that the cluster enforces; or a bundle in place of the one that is to come (active with --from cluster, else recorded)")
	f.StringVar(&r.as, "as", "", "the name of the ClusterPolicyBundle whose place the bundle takes; that of its path if empty")
	f.StringSliceVar(&r.active, "active", nil, "bundles that are active besides; if that is not said with --from cluster, those that the cluster enforces")
	f.StringSliceVar(&r.points, "point", nil, "decision points to make again; all if none is named")
	f.StringSliceVar(&r.failOn, "fail-on", []string{string(compare.Lost)}, "end with 1 if a decision is one of "+kindNames())
	f.Float64Var(&r.pace.Factor, "slower-factor", r.pace.Factor, "a decision is slower that takes so many times longer")
	f.DurationVar(&r.pace.Floor, "slower-floor", r.pace.Floor, "and so much longer")
	f.IntVar(&r.samples, "samples", 10, "how many differences to show whole")
	f.BoolVar(&r.noLatency, "no-latency", false, "leave out how long decisions took, so that the same records print the same bytes")
	for _, name := range []string{"from", "bundle"} {
		_ = cmd.MarkFlagRequired(name) // both flags exist
	}
	return cmd
}

// failOnKinds are the values that --fail-on accepts.
func failOnKinds() []compare.Kind { return append(compare.AllKinds(), replay.Slower) }

func kindNames() string {
	var out []string
	for _, k := range failOnKinds() {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

func (r *replaying) validateFlags(flags *pflag.FlagSet) error {
	for _, k := range r.failOn {
		if !slices.Contains(failOnKinds(), compare.Kind(k)) {
			return exit.UsageError(fmt.Errorf("--fail-on has %q, want some of %s", k, kindNames()))
		}
	}
	for _, p := range r.points {
		if _, ok := catalog.FindPoint(decision.Name(p)); !ok {
			return exit.UsageError(fmt.Errorf("--point has %q, which is no decision point; there are %s", p, pointNames()))
		}
	}
	if r.from != fromCluster && (flags.Changed("since") || flags.Changed("limit")) {
		return exit.UsageError(errors.New("--since and --limit go with --from cluster only"))
	}
	switch {
	case r.noLatency && slices.Contains(r.failOn, string(replay.Slower)):
		return exit.UsageError(errors.New("--no-latency does not go with --fail-on slower"))
	case r.pace.Factor < 1:
		return exit.UsageError(errors.New("--slower-factor is a factor of at least 1"))
	case r.pace.Floor < 0:
		return exit.UsageError(errors.New("--slower-floor is a duration of at least 0"))
	case r.since <= 0 || r.limit <= 0:
		return exit.UsageError(errors.New("--since is a duration, and --limit a number, of more than 0"))
	case r.limit > explain.MaxDecisions:
		return exit.UsageErrorf("--limit is a number of at most %d", explain.MaxDecisions)
	case r.samples < 0:
		return exit.UsageError(errors.New("--samples is a number of at least 0"))
	}
	return nil
}

func (c *commands) runReplay(cmd *cobra.Command, r replaying) error {
	if err := r.validateFlags(cmd.Flags()); err != nil {
		return err
	}
	if r.baseline == "" {
		if r.baseline = replay.Recorded; r.from == fromCluster {
			r.baseline = asActive
		}
	}
	records, err := r.loadRecords(cmd)
	if err != nil {
		return err
	}
	b, builtin, err := c.loadWithBuiltin(r.bundle, &r.kind)
	if err != nil {
		return err
	}
	if r.as != "" {
		b.Name = r.as
	}
	active, err := r.loadActiveBundles(cmd)
	if err != nil {
		return err
	}
	if _, err := gate.New(builtin, gate.WithRunner(c.runner)).AdmitBundle(cmd.Context(), b, active, nil); err != nil {
		return wrapRefusal(prefixProblemPaths(r.bundle, err))
	}
	run, err := c.prepareReplay(r, b, builtin, active)
	if err != nil {
		return err
	}
	report, err := run.RunJob(cmd.Context(), records)
	if err != nil {
		return wrapRefusal(prefixProblemPaths(r.bundle, err))
	}
	if r.noLatency {
		report.Latency = nil
	}
	shown := replayed{report, r.bundle, b, r.failOn}
	if err := shown.printReport(cmd.OutOrStdout(), r.form.String()); err != nil {
		return err
	}
	return exit.RefusalError(shown.failureError())
}

// prepareReplay says which policies are compared.
func (c *commands) prepareReplay(r replaying, b, builtin *bundle.Bundle, active bundle.Set) (*replay.Replay, error) {
	beside := func(b *bundle.Bundle) bundle.Set {
		if b.Kind == bundle.Builtin {
			return active
		}
		rest := slices.DeleteFunc(slices.Clone(active), func(a *bundle.Bundle) bool { return a.Name == b.Name && a.Namespace == b.Namespace })
		return append(rest, b)
	}
	opts := []replay.Option{replay.WithPace(r.pace), replay.WithSamples(r.samples)}
	switch r.baseline {
	case replay.Recorded:
	case asActive:
		opts = append(opts, replay.WithBaseline(replay.Side{Builtin: builtin, Set: active}))
	default:
		old, oldBuiltin, err := c.loadWithBuiltin(r.baseline, &r.kind)
		if err != nil {
			return nil, err
		}
		old.Name = b.Name // the bundle replaces the old one, whatever its file is called
		opts = append(opts, replay.WithBaseline(replay.Side{Builtin: oldBuiltin, Set: beside(old)}))
	}
	return replay.New(replay.Side{Builtin: builtin, Set: beside(b)}, b, opts...), nil
}

// asActive is the value of --baseline for the bundles that the cluster enforces.
const asActive = "active"

// loadActiveBundles returns the other bundles that decide: those that are named, or those that the
// cluster enforces.
func (r *replaying) loadActiveBundles(cmd *cobra.Command) (bundle.Set, error) {
	if cmd.Flags().Changed("active") || r.from != fromCluster && r.baseline != asActive {
		return loadAll(r.active)
	}
	config, err := r.cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	shipped, err := shipped.NewBundles(config, r.manager)
	if err != nil {
		return nil, err
	}
	return shipped.EnforcedBundles(cmd.Context())
}

// fromCluster is the value of --from for the managers of a cluster.
const fromCluster = "cluster"

func (r *replaying) loadRecords(cmd *cobra.Command) ([]decision.Record, error) {
	var records []decision.Record
	var err error
	switch r.from {
	case fromCluster:
		about := managers.Decisions{Since: r.since, Limit: r.limit}
		if len(r.points) == 1 {
			about.Point = decision.Name(r.points[0])
		}
		records, err = r.cluster.FetchRecords(cmd, r.asked, about)
	default:
		records, err = readRecords(cmd.InOrStdin(), r.from)
	}
	if err != nil {
		return nil, err
	}
	if len(r.points) > 0 {
		records = slices.DeleteFunc(records, func(d decision.Record) bool { return !slices.Contains(r.points, string(d.Point)) })
	}
	if len(records) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: no decision of a point that is asked about was found, so nothing is compared")
	}
	return records, nil
}
