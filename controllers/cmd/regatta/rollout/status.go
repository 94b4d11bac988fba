// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// silence is for how long rollout status tolerates that the API server does not answer.
const silence = time.Minute

type statusOptions struct {
	*edit.Options
	watch    bool
	timeout  time.Duration
	revision int64
}

func statusCommand() *cobra.Command {
	o := &statusOptions{Options: edit.NewOptions(ListKinds())}
	cmd := &cobra.Command{
		Use:   "status " + edit.UsageArguments(o.Allowed),
		Short: "Wait until a rollout is complete",
		Long: `Status prints a line for each state of a rollout until it is complete: all pods that the
partition lets be updated are updated and available. The line also has what holds the
rollout: a policy, spec.paused, failures.

It ends with 1 if the rollout exceeds its deadline (spec.progressDeadlineSeconds), if the
object is deleted and at the end of --timeout. It also does so at once if the rollout does
not complete by itself (strategy OnDelete or NotUpdate), or if the strategy selects some
of the pods, which the status does not count apart. Pods of a SidecarSet in which more
than an image changes are updated when a client recreates them.`,
		Example: `  regatta rollout status clone/web
  regatta rollout status sidecarset/log-agent --timeout 10m
  regatta rollout status deployment/web --watch=false`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := parseOne(o.Options, args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.runStatus(cmd, args) },
	}
	o.Cluster.AddFlags(cmd.Flags())
	f := cmd.Flags()
	f.BoolVarP(&o.watch, "watch", "w", true, "wait until the rollout is complete; false prints its state once")
	f.DurationVar(&o.timeout, "timeout", 0, "fail after this time; 0 waits without a limit")
	f.Int64Var(&o.revision, "revision", 0, "fail if the newest revision has another number than this one; 0 takes any")
	o.AddManagerNamespaceFlag(cmd)
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, false)
	return cmd
}

// parseOne reads the object that a command is about, which takes one.
func parseOne(o *edit.Options, args []string) (edit.Reference, error) {
	references, err := o.ParseReferences(args)
	if err != nil {
		return edit.Reference{}, err
	}
	if len(references) > 1 {
		return edit.Reference{}, errors.New("name one object")
	}
	return references[0], nil
}

// readOne reads the object that a command is about, which takes one.
func readOne(ctx context.Context, o *edit.Options, args []string) (dynamic.Interface, *edit.Object, error) {
	about, err := parseOne(o, args)
	if err != nil {
		return nil, nil, exit.UsageError(err)
	}
	objects, err := o.OpenClient()
	if err != nil {
		return nil, nil, err
	}
	found, err := o.Read(ctx, objects, []edit.Reference{about})
	if err != nil {
		return nil, nil, err
	}
	return objects, found[0], nil
}

func (o *statusOptions) runStatus(cmd *cobra.Command, args []string) error {
	if o.timeout < 0 || o.revision < 0 {
		return exit.UsageError(errors.New("--timeout and --revision must not be negative"))
	}
	objects, object, err := readOne(cmd.Context(), o.Options, args)
	if err != nil {
		return err
	}
	p := &statusPrinter{object: object, out: cmd.OutOrStdout()}
	if o.revision > 0 {
		p.checkRevision = func(live *unstructured.Unstructured) error {
			return o.checkRevision(cmd.Context(), objects, object.Kind, live)
		}
	}
	if !o.watch {
		_, err := p.printState(object.Live)
		return err
	}
	ctx, stop := cmd.Context(), context.CancelFunc(func() {})
	if o.timeout > 0 {
		ctx, stop = context.WithTimeout(ctx, o.timeout)
	}
	defer stop()
	follow := follower{
		client: objects.Resource(object.Kind.GroupVersionResource).Namespace(object.Live.GetNamespace()), look: p.printState,
		every: poll, patience: silence,
	}
	err = follow.followObject(ctx, object.Live)
	switch {
	case cmd.Context().Err() != nil:
		return errInterrupted
	case errors.Is(err, errDeleted):
		return exit.RefusalError(fmt.Errorf("%s was deleted", object))
	case err != nil && ctx.Err() != nil:
		return exit.RefusalError(fmt.Errorf("the rollout of %s was not complete after %s: %s", object, o.timeout, p.before))
	}
	return err
}

// checkRevision refuses an object whose newest revision has another number than the one that the user gave.
func (o *statusOptions) checkRevision(
	ctx context.Context, objects dynamic.Interface, kind edit.Kind, live *unstructured.Unstructured,
) error {
	h, err := readHistory(ctx, objects, kind, live, o.ManagerNamespace())
	if err != nil {
		return err
	}
	newest := h.findNewest()
	if newest == nil || newest.number != o.revision {
		return exit.RefusalError(fmt.Errorf("%s is to have revision %d, and its newest one is %s",
			kind.Describe(live.GetName()), o.revision, newest))
	}
	return nil
}

// statusPrinter prints a line for each state that differs from the one before.
type statusPrinter struct {
	object *edit.Object
	out    io.Writer
	// checkRevision refuses an object with another revision than the user wants; nil takes any.
	checkRevision func(*unstructured.Unstructured) error
	checked       int64 // the generation that was checked
	before        string
}

// printState prints a state of the object. It returns true if the rollout is complete, and an error if it
// does not complete.
func (p *statusPrinter) printState(live *unstructured.Unstructured) (bool, error) {
	s, err := ReadState(p.object.Kind, live)
	if err != nil {
		return false, err
	}
	if s.Observed && p.checkRevision != nil && p.checked != live.GetGeneration() {
		if err := p.checkRevision(live); err != nil {
			return false, err
		}
		p.checked = live.GetGeneration()
	}
	switch {
	case s.Endless != "":
		return false, exit.RefusalError(fmt.Errorf("the rollout of %s cannot be waited for: %s (%s)",
			p.object, s.Endless, s.describeProgress()))
	case s.IsComplete():
		return true, p.printLine(printedName(p.object) + " is rolled out: " + s.CompletionText())
	case s.Observed && s.Deadline != "":
		return false, exit.RefusalError(fmt.Errorf("%s: %s (%s)", p.object, joinLines(s.Deadline), s.ProgressText()))
	case s.describeProgress() == p.before:
		return false, nil
	}
	p.before = s.describeProgress()
	return false, p.printLine(printedName(p.object) + ": " + p.before)
}

func (p *statusPrinter) printLine(line string) error {
	if _, err := fmt.Fprintln(p.out, edit.EscapeText(line)); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
