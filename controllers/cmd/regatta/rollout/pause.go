// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// pausableKinds are the kinds with a field that stops them.
func pausableKinds() []edit.Kind {
	return edit.SelectKinds(func(k edit.Kind) bool { return k.Paused != nil })
}

func pauseCommand() *cobra.Command {
	return newPauseCommand(&cobra.Command{
		Use:   "pause",
		Short: "Stop a rollout",
		Long: `Pause sets the field paused of a workload. The controller then updates no further pods;
scaling and the replacement of pods go on. A BroadcastJob and an AdvancedCronJob that are
paused start no pods. regatta rollout resume lets them go on.`,
		Example: `  regatta rollout pause clone/web
  regatta rollout pause sidecarset -l app=log-agent`,
	}, true)
}

func resumeCommand() *cobra.Command {
	return newPauseCommand(&cobra.Command{
		Use:   "resume",
		Short: "Let a paused rollout go on",
		Long: `Resume removes the field paused of a workload that regatta rollout pause, or another
client, has set.`,
		Example: `  regatta rollout resume clone/web`,
	}, false)
}

// newPauseCommand completes a command that pauses or resumes.
func newPauseCommand(cmd *cobra.Command, pause bool) *cobra.Command {
	o := edit.NewOptions(pausableKinds())
	cmd.Use += " " + edit.UsageArguments(o.Allowed)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		_, err := o.ParseReferences(args)
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		references, err := o.ParseReferences(args)
		if err != nil {
			return exit.UsageError(err)
		}
		return o.ForEach(cmd.Context(), references, func(object *edit.Object) error { return setPaused(cmd, o, object, pause) })
	}
	o.AddFlags(cmd)
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, true)
	return cmd
}

// setPaused pauses or resumes an object that is not in that state yet.
func setPaused(cmd *cobra.Command, o *edit.Options, object *edit.Object, pause bool) error {
	if err := object.RefuseControlled(); err != nil {
		return err
	}
	paused, err := readPaused(object.Kind.Paused, object.Live)
	switch {
	case err != nil:
		return err
	case paused && pause:
		return exit.RefusalError(fmt.Errorf("%s is already paused", quotedName(object)))
	case !paused && !pause:
		return exit.RefusalError(fmt.Errorf("%s is not paused", quotedName(object)))
	case pause:
		if field := (workload{kind: object.Kind}).onDelete(object.Live); field != nil {
			return exit.RefusalError(fmt.Errorf("%s cannot be paused: %s is OnDelete, so only clients update its pods",
				quotedName(object), field))
		}
	}
	done := map[bool]string{true: "paused", false: "resumed"}[pause]
	return o.Write(cmd.Context(), cmd.OutOrStdout(), object, done, func(live *unstructured.Unstructured) error {
		if !pause {
			unstructured.RemoveNestedField(live.Object, object.Kind.Paused...)
			return nil
		}
		if err := unstructured.SetNestedField(live.Object, true, object.Kind.Paused...); err != nil {
			return fmt.Errorf("writing %s: %w", object.Kind.Paused, err)
		}
		return nil
	})
}
