// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

type options struct {
	cluster *target.Cluster
	asked   managers.Flags
	timeout time.Duration
	plain   bool
}

func watchCommand() *cobra.Command {
	o := &options{cluster: target.NewCluster().WithoutTimeout()}
	form := strings.Join(target.ArgumentForms(target.WorkloadKinds()...), " | ")
	if strings.Contains(form, "|") {
		form = "(" + form + ")"
	}
	cmd := &cobra.Command{
		Use:   "watch " + form,
		Short: "Follow a rollout until it is complete",
		Long: `Watch shows how far the rollout of a ` + kinds.List("or") + ` is, and what its pods wait for,
until it is complete. It fails when the rollout exceeds its deadline
(spec.progressDeadlineSeconds), and at the end of --timeout.`,
		Example: `  regatta rollout watch clone/web
  regatta rollout watch clone/web --plain --timeout 10m`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := target.ParseArgs(args, target.WorkloadKinds()...)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.runWatch(cmd, args) },
	}
	o.cluster.AddFlags(cmd.Flags())
	o.asked.AddFlags(cmd.Flags())
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "fail after this time; 0 waits without a limit")
	followed := edit.SelectKinds(func(k edit.Kind) bool { return slices.Contains(target.WorkloadKinds(), k.GroupKind()) })
	edit.AddCompletion(cmd, o.cluster, followed, false)
	cmd.Flags().BoolVar(&o.plain, "plain", false, "print lines in place of a live view, as is done where the output is no terminal")
	return cmd
}

func (o *options) runWatch(cmd *cobra.Command, args []string) error {
	about, err := target.ParseArgs(args, target.WorkloadKinds()...)
	if err != nil {
		return err
	}
	if about, err = o.cluster.ResolveNamespace(about); err != nil {
		return err
	}
	cluster, err := o.cluster.OpenClients(o.asked)
	if err != nil {
		return err
	}
	// Logs of client-go would be written across the view, which reports errors itself.
	klog.SetLogger(logr.Discard())
	f, err := newFeed(cmd.Context(), cluster.Core, cluster.Objects, cluster.Asker, about)
	switch {
	case cmd.Context().Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	watching, stop := context.WithCancel(cmd.Context())
	defer stop()
	go f.runWatches(watching)
	r := &rollout{about: about, source: f.takeSnapshot, now: time.Now}
	if o.timeout > 0 {
		r.until, r.timeout = time.Now().Add(o.timeout), o.timeout
	}
	if out := cmd.OutOrStdout(); o.plain || !output.IsTerminal(out) {
		return printPlain(cmd.Context(), r, out, poll)
	}
	return showLive(cmd.Context(), r, cmd.OutOrStdout())
}

// rollout is the rollout that is followed, in any form of output.
type rollout struct {
	about   target.Target
	source  func() (snapshot, error)
	now     func() time.Time
	until   time.Time // zero if without a limit
	timeout time.Duration
	// settled is since when the rollout is complete. It must stay complete for a moment, in which the last
	// answer of the manager arrives.
	settled time.Time
}

const settle = poll + frame

// nextSnapshot returns a snapshot, whether it is the last one, and the error to end with.
func (r *rollout) nextSnapshot() (s snapshot, last bool, err error) {
	if s, err = r.source(); err != nil {
		return s, true, err
	}
	p := s.state
	if !p.IsComplete() {
		r.settled = time.Time{}
	} else if r.settled.IsZero() {
		r.settled = r.now()
	}
	switch {
	case s.gone:
		return s, true, fmt.Errorf("%s was deleted", r.about)
	case p.IsComplete():
		return s, r.now().Sub(r.settled) >= settle, nil
	case p.Observed && p.Deadline != "":
		return s, true, fmt.Errorf("%s: %s (%s)", r.about, p.Deadline, p.ProgressText())
	case !r.until.IsZero() && !r.now().Before(r.until):
		return s, true, fmt.Errorf("the rollout of %s was not complete after %s: %s", r.about, r.timeout, p.ProgressText())
	}
	return s, false, nil
}

// errInterrupted tells the caller of this command that it ended before the
// rollout did.
var errInterrupted = errors.New("interrupted; the rollout goes on")

func showLive(ctx context.Context, r *rollout, out io.Writer) error {
	m := newModel(r, lipgloss.NewRenderer(out))
	last, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithOutput(out)).Run()
	switch {
	case errors.Is(err, tea.ErrInterrupted), errors.Is(err, tea.ErrProgramKilled):
		return errInterrupted
	case err != nil:
		return fmt.Errorf("showing the rollout: %w", err)
	}
	if m, ok := last.(model); ok {
		return m.err
	}
	return nil
}
