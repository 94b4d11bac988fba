// SPDX-License-Identifier: Apache-2.0

// Package why is the command that explains why a pod was or was not updated, the state of a workload,
// and why a request was refused.
package why

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

// options are the flags.
type options struct {
	cluster *target.Cluster
	asked   managers.Flags
	form    *output.Form
	all     bool
	nearest bool
	changed []string
	request string
	user    string
}

// NewCommand makes the command.
func NewCommand() *cobra.Command {
	o := &options{cluster: target.NewCluster(), form: output.New(output.Text, output.JSON, output.YAML)}
	forms, workload := target.ArgumentForms(target.KnownKinds()...), kinds.List("or")
	cmd := &cobra.Command{
		Use:   "why (" + strings.Join(forms, " | ") + " | KIND/NAME | --request UID | --user-name NAME)",
		Short: "Tell why a pod was not updated, or a request refused",
		Long: `Why tells what was decided about a pod, or about a ` + workload + ` and its pods: by
which rule, where that rule is, on which facts, and when it may change; how it stands with
a UnitedDeployment, WorkloadSpread, SidecarSet, BroadcastJob or AdvancedCronJob. Of these
and of objects of any other kind it also tells which requests were refused lately,
such as a delete that a budget or a label did not allow. A single one is found by
the UID that its refusal ends with, and those of a user by their name.

It also tells how near each rule is: which fact lets go what is held, and which
others would hold it, in the rules and functions that it refers to as well.

With --if it also tells what would be held, released or denied otherwise if a fact were
another one. The manager makes the last decision again by its own policies; nothing acts
on that, and no decision log has it. A fact is a path in the input of the decision, as the
output names them, such as update, strategy.partition or workload.annotations["approved"];
pods[0] has the facts of the pod that is asked about. VALUE is JSON, or a text without
quotes, or for now a time such as 2026-12-24T10:00:00Z; FACT- is without the fact. Facts that
follow from others are not computed again, so change these too. Who asks and the
namespace cannot be changed, and a value that the answer does not show is left out.
A pod is decided alone, without the other pods of its workload. Changed facts are
in the URL of the request, which audit logs keep.

The API server passes the question on to the managers, as kubectl get --raw would.
Users with the ClusterRole view, edit, admin or kruise-decision-reader in a namespace
may ask about what is there, and is told about whatever they may get. Requests are
looked for in the whole cluster, and in the one namespace where that is not allowed.`,
		Example: `  regatta why pod/web-x7k2p
  regatta why clone/web -n shop --all
  regatta why acj/backup
  regatta why namespace/shop
  regatta why pod/web-x7k2p --if 'workload.annotations["approved"]="r2"'
  regatta why clone/web --if now=2026-12-24T10:00:00Z --if workload.labels.team-
  regatta why --request 6f0c1f0e-9a57-4b8c-8a46-0f6f6f0b8a11
  kubectl regatta why pod/web-x7k2p -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if (o.request != "" || o.user != "") == (len(args) > 0) {
				return errors.New("tell what it is about: either an object, such as pod/NAME, or --request or --user-name")
			}
			if o.user != "" && len(o.changed) > 0 {
				return errors.New("--if is about one answer: give an object or --request, and not --user-name")
			}
			if _, err := whatif.ParseChanges(o.changed); err != nil {
				return fmt.Errorf("--if: %w", err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.runWhy(cmd, args) },
	}
	o.cluster.AddFlags(cmd.Flags())
	o.asked.AddFlags(cmd.Flags())
	o.form.AddTo(cmd)
	cmd.Flags().StringVar(&o.request, "request", "", "UID of a request that was refused")
	cmd.Flags().StringVar(&o.user, "user-name", "", "name of a user, for all that they were refused lately")
	cmd.Flags().BoolVar(&o.nearest, "nearest", true, "tell what would have changed the answer, where one thing is asked about")
	cmd.Flags().StringArrayVar(&o.changed, "if", nil, "tell what would change with another fact: FACT=VALUE, or FACT- without it; may be repeated")
	cmd.Flags().BoolVar(&o.all, "all", false, "tell of each pod of a "+workload+", and of all rules that took part")
	return cmd
}

func (o *options) runWhy(cmd *cobra.Command, args []string) error {
	about := target.Target{}
	if len(args) > 0 {
		var err error
		if about, err = o.cluster.FindTarget(args); err != nil {
			return err
		}
	}
	cluster, err := o.cluster.OpenClients(o.asked)
	if err != nil {
		return err
	}
	look := lookup{pods: cluster.Core.CoreV1(), objects: cluster.Objects}
	reply, warnings, err := o.fetchExplanation(cmd.Context(), cluster.Asker, managers.Question{
		Group: about.Group, Kind: about.Kind, Resource: about.Resource, Namespace: about.Namespace, Name: about.Name,
		Nearest: o.nearest && o.user == "" && !o.all, If: o.changed,
		Pods: o.all && slices.Contains(target.WorkloadKinds(), about.GroupKind()), Request: o.request, User: o.user,
	})
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	if err != nil {
		if reason := look.objectProblem(cmd.Context(), about); reason != nil {
			return reason
		}
		return err
	}
	if err := o.checkWhatIf(reply.Answer); err != nil {
		return err
	}
	return wrapPrintError(o.printReply(cmd.Context(), cmd.OutOrStdout(), reply, look))
}

// fetchExplanation searches for refusals in the namespace only, if the user may not ask about the whole cluster.
func (o *options) fetchExplanation(ctx context.Context, asker *managers.Asker, q managers.Question) (explain.Reply, []error, error) {
	reply, warnings, err := asker.FetchExplanation(ctx, q)
	var no *managers.RefusedError
	if !q.AsksForRefusals() || !errors.As(err, &no) || !no.Asking {
		return reply, warnings, err
	}
	in, err := o.cluster.ResolveNamespace(target.Target{})
	if err != nil {
		return explain.Reply{}, warnings, err
	}
	q.Namespace = in.Namespace
	return asker.FetchExplanation(ctx, q)
}

func (o *options) printReply(ctx context.Context, out io.Writer, reply explain.Reply, look lookup) error {
	switch o.form.String() {
	case output.JSON:
		return output.PrintJSON(out, reply)
	case output.YAML:
		text, err := yaml.Marshal(reply)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	t := text{now: time.Now(), width: widthOf(out), paint: newPainter(out), all: o.all}
	t.conditions = look.readConditions(ctx, reply.Answer.Subject)
	_, err := io.WriteString(out, t.renderReply(reply))
	return err
}

func wrapPrintError(err error) error {
	if err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	return nil
}
