// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

type restartOptions struct {
	*edit.Options
	inPlace bool
}

func restartCommand(preview edit.Preview) *cobra.Command {
	o := &restartOptions{Options: edit.NewOptions(slices.DeleteFunc(ListKinds(), isSidecarSet))}
	cmd := &cobra.Command{
		Use:   "restart " + edit.UsageArguments(o.Allowed) + " [--in-place]",
		Short: "Recreate all pods of a workload, or restart their containers in place",
		Long: `Restart writes the time into annotation ` + inplace.RestartedAtKey + ` of the
pod template, so that the controller recreates each pod as for any other change of the
template: by the strategy of the workload, and as policies allow.

With --in-place it restarts the containers of each pod of a ` + kinds.List("or") + `
and leaves the pods where they are, with their names, addresses and volumes. The manager
makes a ContainerRecreateRequest for each pod: as many at once as maxUnavailable of the
workload allows, in the order in which it would update them, and none that a policy holds.
It needs node agents. The request is annotation ` + kruise.RestartInPlaceKey + ` of the
workload. The manager removes it when all pods have restarted; if a client removes it, the
restart stops after the pods that are under way.`,
		Example: `  regatta rollout restart clone/web
  regatta rollout restart clone/web --in-place
  kubectl annotate clone web ` + kruise.RestartInPlaceKey + `-   # stops a restart in place`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := o.parseReferences(args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.runRestart(cmd, args) },
	}
	o.AddFlags(cmd)
	cmd.Flags().BoolVar(&o.inPlace, "in-place", false, "restart the containers and leave the pods as they are")
	if preview != nil {
		o.AddPreviewFlag(cmd, preview)
		cmd.MarkFlagsMutuallyExclusive("in-place", "preview")
	}
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, true)
	return cmd
}

func isSidecarSet(k edit.Kind) bool { return k.GroupKind() == sidecarSet }

// parseReferences reads the objects of the command line. Kinds that cannot be restarted are refused.
func (o *restartOptions) parseReferences(args []string) ([]edit.Reference, error) {
	for i, arg := range args {
		word, _, _ := strings.Cut(arg, "/")
		if i > 0 && word == arg { // the name of an object
			continue
		}
		if slices.ContainsFunc(ListKinds(), func(k edit.Kind) bool { return isSidecarSet(k) && k.IsNamed(word) }) {
			return nil, exit.RefusalError(errors.New("a SidecarSet has no pod template, so it cannot be restarted; " +
				"to restart containers of a pod, create a ContainerRecreateRequest for the pod"))
		}
	}
	return o.ParseReferences(args)
}

func (o *restartOptions) runRestart(cmd *cobra.Command, args []string) error {
	references, err := o.parseReferences(args)
	if err != nil {
		return err
	}
	for _, r := range references {
		if _, ok := kinds.FindByGroupKind(r.Kind.GroupKind()); o.inPlace && !ok {
			return exit.UsageError(fmt.Errorf("--in-place is for a %s, and not for %s", kinds.List("or"), r.Kind.Describe(r.Name)))
		}
	}
	now := time.Now()
	return o.ForEach(cmd.Context(), references, func(object *edit.Object) error {
		if o.inPlace {
			return o.restartInPlace(cmd, object, now)
		}
		return o.restartPods(cmd, object, now)
	})
}

// restartInPlace asks for a restart of the containers of all pods.
func (o *restartOptions) restartInPlace(cmd *cobra.Command, object *edit.Object, now time.Time) error {
	err := o.Write(cmd.Context(), cmd.OutOrStdout(), object, "restarts in place", func(live *unstructured.Unstructured) error {
		return setAnnotation(live, edit.Path{"metadata", "annotations"}, kruise.RestartInPlaceKey, now.UTC().Format(time.RFC3339))
	})
	if err == nil && !o.IsDryRun() {
		fmt.Fprintf(cmd.ErrOrStderr(), "follow the restart with: kubectl get crr -n %s -w\n", object.Live.GetNamespace())
	}
	return err
}

// restartPods changes the template so that the controller recreates all pods.
func (o *restartOptions) restartPods(cmd *cobra.Command, object *edit.Object, now time.Time) error {
	if err := refuseRestart(object); err != nil {
		return err
	}
	changed := object.Live
	err := o.Write(cmd.Context(), cmd.OutOrStdout(), object, "restarted", func(live *unstructured.Unstructured) error {
		template, err := object.Kind.PodTemplatePath(live)
		if err != nil {
			return err
		}
		changed = live
		annotations := slices.Concat(template, edit.Path{"metadata", "annotations"})
		// A value of another type is an error of setAnnotation.
		present, _, _ := unstructured.NestedString(live.Object, slices.Concat(annotations, edit.Path{inplace.RestartedAtKey})...)
		at, err := chooseRestartTime(present, now)
		if err != nil {
			return err
		}
		return setAnnotation(live, annotations, inplace.RestartedAtKey, at)
	})
	if err == nil {
		printWarnings(cmd.ErrOrStderr(), object, whyPodsStay(object, changed))
	}
	return err
}

// chooseRestartTime chooses the time of a restart. It must be later than the present one, which may be of a clock that is
// ahead: otherwise the manager does not restart the pods.
func chooseRestartTime(present string, now time.Time) (string, error) {
	before, err := time.Parse(time.RFC3339, present)
	if err != nil || before.Before(now.Truncate(time.Second)) {
		return now.Format(time.RFC3339), nil
	}
	next := before.Add(time.Second).Format(time.RFC3339)
	if at, err := time.Parse(time.RFC3339, next); err != nil || !at.After(before) { // after the year 9999
		return "", exit.RefusalError(fmt.Errorf("annotation %s of the pod template is %s, and no later time can be written; "+
			"remove the annotation before the restart", inplace.RestartedAtKey, edit.EscapeText(present)))
	}
	return next, nil
}

// refuseRestart refuses an object whose pods would not be recreated.
func refuseRestart(object *edit.Object) error {
	if err := object.RefuseControlled(); err != nil {
		return err
	}
	w, err := findWorkload(object.Kind, object.Live)
	if err != nil {
		return err
	}
	paused, err := w.isPaused(object.Live)
	switch {
	case err != nil:
		return err
	case paused && len(w.at) > 0:
		return exit.RefusalError(fmt.Errorf("%s is paused by %s; set it to false before the restart",
			quotedName(object), w.fieldPath(w.kind.Paused...)))
	case paused:
		return exit.RefusalError(fmt.Errorf("%s is paused; let it go on before the restart: regatta rollout resume %s",
			quotedName(object), describeReference(object)))
	case w.kind.UpdatePolicy == nil:
		return nil
	}
	field := w.fieldPath(w.kind.UpdatePolicy...)
	policy, _, err := unstructured.NestedString(object.Live.Object, field...)
	advice := "add --in-place to restart the containers"
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", field, err)
	case policy != string(kruise.InPlaceOnlyPodUpdatePolicyType):
		return nil
	case len(w.at) > 0:
		advice = "restart each subset with --in-place"
	}
	return exit.RefusalError(fmt.Errorf("%s of %s is %s, so no pod may be recreated; %s", field, quotedName(object), policy, advice))
}

// setAnnotation writes an annotation at a path. Values of another type there are an error.
func setAnnotation(object *unstructured.Unstructured, path edit.Path, key, value string) error {
	if _, _, err := unstructured.NestedStringMap(object.Object, path...); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := unstructured.SetNestedField(object.Object, value, slices.Concat(path, edit.Path{key})...); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
