// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/cost"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// costing is one run of the command cost.
type costing struct {
	from      []string
	cluster   *target.Cluster
	asked     managers.Flags
	since     days
	quiet     days
	limit     int
	namespace string
	workloads int
	form      *output.Form
}

// days is the value of a flag: a duration, for which a number of days may stand.
type days time.Duration

// Set accepts 36h and 30d.
func (d *days) Set(text string) error {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(number, 10, 16)
		*d = days(time.Duration(n) * 24 * time.Hour)
		if err != nil || n == 0 {
			return errors.New("it is a number of days of at least 1, such as 30d, or a duration, such as 36h")
		}
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 {
		return errors.New("it is a duration of more than 0, such as 36h, or a number of days, such as 30d")
	}
	*d = days(v)
	return nil
}

// String is the duration; empty if none is set.
func (d *days) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type is what help calls a value.
func (d *days) Type() string { return "duration" }

func (c *commands) newCostCommand() *cobra.Command {
	s := costing{quiet: days(24 * time.Hour), limit: explain.MaxDecisions, cluster: target.NewCluster().WithoutNamespace(), form: output.New(output.Text, output.JSON)}
	cmd := &cobra.Command{
		Use:   "cost --from (FILE... | cluster)",
		Short: "Tell how often and how long each rule held what, and what it denied",
		Long: `Cost reads recorded decisions and adds up what each rule cost: how often it began to
hold a workload or some of its pods, for how many hours of all workloads together,
and how many requests it denied.

A hold lasts from the decision that has it to the next one about the workload that
does not, or to the time that the hold names, if nothing was decided after that. One
that names none counts for --quiet after its last decision at most: a rollout that is
taken back while it is held is decided no more. Holds whose end nothing tells are
counted as OPEN.

Counted are the holds of rollout/plan, rollout/scale, placement/allocation,
placement/broadcast, placement/ephemeral, placement/distribution and node/images, and
the denials of protection, injection and launchpriority. Decisions about single pods
or runs hold nothing for a time and are left out, and so are fallbacks.

Files are the decision logs of all managers, in any order. For --from cluster you need
the ClusterRole kruise-decisions-reader, in the whole cluster; managers remember their
latest decisions only.`,
		Example: `  regatta policy cost --from decisions-0.jsonl,decisions-1.jsonl --since 30d
  regatta policy cost --from cluster --since 1h -n shop
  zcat logs/*.gz | regatta policy cost --from - -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCost(cmd, s) },
	}
	s.cluster.AddFlags(cmd.Flags())
	s.asked.AddFlags(cmd.Flags())
	s.form.AddTo(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&s.from, "from", nil, "files of recorded decisions, as lines of JSON; - is the standard input, and cluster what the managers remember")
	f.Var(&s.since, "since", "how long before the last decision to begin, such as 30d or 36h; with the first one if unset, and an hour with --from cluster")
	f.Var(&s.quiet, "quiet", "how long a hold that names no end counts after the last decision about it")
	f.IntVar(&s.limit, "limit", s.limit, "with --from cluster: how many decisions to take from each manager, the latest ones")
	f.StringVarP(&s.namespace, "namespace", "n", "", "only what is in this namespace")
	f.IntVar(&s.workloads, "workloads", 3, "how many workloads to show below each rule, those that were held longest")
	_ = cmd.MarkFlagRequired("from") // it is there
	return cmd
}

func runCost(cmd *cobra.Command, s costing) error {
	switch {
	case len(s.from) == 0:
		return exit.UsageError(errors.New("--from is empty; it is a file of decisions, or cluster"))
	case cmd.Flags().Changed("limit") && !slices.Contains(s.from, fromCluster):
		return exit.UsageError(errors.New("--limit goes with --from cluster only"))
	case s.limit <= 0 || s.limit > explain.MaxDecisions:
		return exit.UsageErrorf("--limit is a number from 1 to %d", explain.MaxDecisions)
	case s.workloads < 0:
		return exit.UsageError(errors.New("--workloads is a number of at least 0"))
	}
	counter := cost.NewCounter(s.namespace)
	for _, path := range s.from {
		read := func() error { return countFile(cmd.InOrStdin(), path, counter.AddRecord) }
		if path == fromCluster {
			if len(s.from) > 1 {
				return exit.UsageError(errors.New("--from is either cluster or files: the managers remember what is in their files"))
			}
			read = func() error { return s.countRemembered(cmd, counter.AddRecord) }
		}
		if err := read(); err != nil {
			return err
		}
	}
	report := counter.BuildReport(cost.Window{Since: time.Duration(s.since), Quiet: time.Duration(s.quiet)})
	if report.Decisions == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: no decision was found, so nothing is counted")
	}
	if s.form.String() == output.JSON {
		return output.PrintJSON(cmd.OutOrStdout(), report)
	}
	return report.WriteText(cmd.OutOrStdout(), s.workloads)
}

// countFile counts the decisions of a file, one after the other: a file of a month may be larger than the memory.
func countFile(in io.Reader, path string, count func(decision.Record)) error {
	if path == stdin {
		return record.ReadEach(in, count)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading records: %w", err)
	}
	defer f.Close()
	if err := record.ReadEach(f, count); err != nil {
		return fmt.Errorf("reading records of %s: %w", path, err)
	}
	return nil
}

// countRemembered counts the decisions that the managers remember.
func (s *costing) countRemembered(cmd *cobra.Command, count func(decision.Record)) error {
	about := managers.Decisions{Since: time.Duration(s.since), Namespace: s.namespace, Limit: s.limit}
	if about.Since == 0 {
		about.Since = time.Hour
	}
	records, err := s.cluster.FetchRecords(cmd, s.asked, about)
	for _, r := range records {
		count(r)
	}
	return err
}
