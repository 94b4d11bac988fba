// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// approvedRevisionKey is the annotation that the policy canary-approval reads.
const approvedRevisionKey = "regatta.sh/approved-revision"

// observation is for how long approve waits for the manager to see the newest spec.
const observation = 5 * time.Second

// errUnobserved says that the manager has not seen the newest spec, so that the status names an older revision.
var errUnobserved = errors.New("the manager has not seen the newest change yet, so the status names an older revision; " +
	"try again, or see whether a manager runs")

type approveOptions struct {
	*edit.Options
	annotation string
	revision   string
	// wait is for how long it waits for the manager.
	wait time.Duration
}

func approveCommand(wait time.Duration) *cobra.Command {
	allowed := slices.DeleteFunc(ListKinds(), func(k edit.Kind) bool { return k.IsNative() }) // policies do not act on them
	o := &approveOptions{Options: edit.NewOptions(allowed), wait: wait}
	cmd := &cobra.Command{
		Use:   "approve " + edit.UsageArguments(o.Allowed),
		Short: "Approve the newest revision, for a policy that waits for that",
		Long: `Approve writes the name of the newest revision into an annotation of a workload. A policy
such as canary-approval (policies/examples) holds a rollout until the annotation names the
revision. regatta rollout status prints what it waits for.

The name is that of the status, once the manager has seen the newest change. With
--revision it is an error if the newest revision is another one, so that a user does not
approve what came after the revision that they have looked at.`,
		Example: `  regatta rollout approve clone/web --revision web-5d9f8b7c6
  regatta rollout approve sidecarset/log-agent`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := o.ParseReferences(args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.runApprove(cmd, args) },
	}
	o.AddFlags(cmd)
	cmd.Flags().StringVar(&o.annotation, "annotation", approvedRevisionKey, "key of the annotation that the policy reads")
	cmd.Flags().StringVar(&o.revision, "revision", "", "approve only if this is the name of the newest revision")
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, true)
	return cmd
}

func (o *approveOptions) runApprove(cmd *cobra.Command, args []string) error {
	if problems := validation.IsQualifiedName(o.annotation); len(problems) > 0 {
		return exit.UsageError(fmt.Errorf("--annotation is %q: %s", o.annotation, strings.Join(problems, "; ")))
	}
	references, err := o.ParseReferences(args)
	if err != nil {
		return exit.UsageError(err)
	}
	objects, err := o.OpenClient()
	if err != nil {
		return err
	}
	return o.ForEach(cmd.Context(), references, func(object *edit.Object) error { return o.approveObject(cmd, objects, object) })
}

// approveObject approves the newest revision of an object as soon as the manager has seen the newest spec. The first
// one that it finds is meant: another client may change the object meanwhile.
func (o *approveOptions) approveObject(cmd *cobra.Command, objects dynamic.Interface, object *edit.Object) error {
	wanted := o.revision
	for began := time.Now(); ; {
		err := o.approveObserved(cmd, objects, object, &wanted)
		if !errors.Is(err, errUnobserved) || time.Since(began) >= o.wait {
			return err
		}
		if err := waitFor(cmd.Context(), poll/4); err != nil {
			return errInterrupted
		}
		again, err := o.Read(cmd.Context(), objects, []edit.Reference{{Kind: object.Kind, Name: object.Live.GetName()}})
		if err != nil {
			return err
		}
		object = again[0]
	}
}

// approveObserved approves the wanted revision of an object that the manager has seen. If none is wanted yet, it is
// the newest one.
func (o *approveOptions) approveObserved(cmd *cobra.Command, objects dynamic.Interface, object *edit.Object, wanted *string) error {
	check := func(live *unstructured.Unstructured) error {
		name, err := o.findApproved(cmd.Context(), objects, object.Kind, live)
		switch {
		case err != nil:
			return err
		case *wanted == "":
			*wanted = name
		case *wanted != name:
			return exit.RefusalError(fmt.Errorf("the newest revision of %s is %s, and not %s; look at it before you approve it",
				object, edit.EscapeText(name), edit.EscapeText(*wanted)))
		}
		return nil
	}
	if err := check(object.Live); err != nil {
		return err
	}
	done := "approved revision " + edit.EscapeText(*wanted)
	return o.Write(cmd.Context(), cmd.OutOrStdout(), object, done, func(live *unstructured.Unstructured) error {
		if err := check(live); err != nil {
			return err
		}
		return setAnnotation(live, edit.Path{"metadata", "annotations"}, o.annotation, *wanted)
	})
}

// findApproved finds the name of the newest revision, which policies compare the annotation with. The status of a
// DaemonSet has only the hash in it.
func (o *approveOptions) findApproved(
	ctx context.Context, objects dynamic.Interface, kind edit.Kind, live *unstructured.Unstructured,
) (string, error) {
	object := kind.Describe(live.GetName())
	if !isObserved(live) {
		return "", exit.RefusalError(fmt.Errorf("%s: %w", object, errUnobserved))
	}
	_, name := statusRevisions(kind, live)
	switch {
	case name == "":
		return "", exit.RefusalError(fmt.Errorf("the status of %s names no revision", object))
	case kind.GroupKind() != advancedDaemon:
		return name, nil
	}
	h, err := readHistory(ctx, objects, kind, live, live.GetNamespace())
	if err != nil {
		return "", err
	}
	if r := h.findByName(name); r != nil {
		return r.name, nil
	}
	return "", exit.RefusalError(fmt.Errorf("%s has no revision %s, which its status names; its revisions are %s",
		object, edit.EscapeText(name), joinRevisions(h.all)))
}
