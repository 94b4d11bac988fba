// SPDX-License-Identifier: Apache-2.0

// Package set has the commands that change fields of pod templates.
package set

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// NewCommand makes the command with its subcommands. preview simulates a rollout for the flag
// --preview; without it the commands do not have the flag.
func NewCommand(preview edit.Preview) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change the image, variables, resources or service account of a pod template",
		Long: `Set changes fields of the pod template of a workload, or of the containers of a SidecarSet, and
leaves all other fields as they are.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(imageCommand(preview), envCommand(preview), resourcesCommand(preview), serviceAccountCommand(preview))
	return cmd
}

// kindsWithPodSpec are the kinds whose objects have a pod spec.
func kindsWithPodSpec() []edit.Kind {
	return edit.SelectKinds(func(k edit.Kind) bool { return len(k.PodSpecs) > 0 })
}

// templateText is the part of the help texts about objects with more than one pod template.
const templateText = `In a UnitedDeployment and an AdvancedCronJob the template in use is changed. What the patch of a
subset of a UnitedDeployment sets still overrides it. An object that a UnitedDeployment made is
refused: change the UnitedDeployment.`

// podSpecChange changes the pod spec at a path of an object.
type podSpecChange func(object *unstructured.Unstructured, podSpec edit.Path) error

// changePodSpecs makes a change of the objects that references name, and prints what was done to each.
func changePodSpecs(cmd *cobra.Command, o *edit.Options, references []string, done string, change podSpecChange) error {
	found, err := o.ParseReferences(references)
	if err != nil {
		return exit.UsageError(err)
	}
	return o.ForEach(cmd.Context(), found, func(object *edit.Object) error {
		if err := object.RefuseControlled(); err != nil {
			return err
		}
		return o.Write(cmd.Context(), cmd.OutOrStdout(), object, done, func(u *unstructured.Unstructured) error {
			podSpec, err := object.Kind.PodSpecPath(u)
			if err != nil {
				return err
			}
			return change(u, podSpec)
		})
	})
}
