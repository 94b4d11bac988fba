// SPDX-License-Identifier: Apache-2.0

package set

import (
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"

	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// kindsWithPodTemplate are the kinds whose pod spec is that of a whole pod. A SidecarSet has containers
// only.
func kindsWithPodTemplate() []edit.Kind {
	return edit.SelectKinds(func(k edit.Kind) bool { return len(k.PodSpecs) > 0 && len(k.PodSpecs[0]) > 1 })
}

func serviceAccountCommand(preview edit.Preview) *cobra.Command {
	o := edit.NewOptions(kindsWithPodTemplate())
	cmd := &cobra.Command{
		Use:     "serviceaccount KIND/NAME... SERVICEACCOUNT",
		Aliases: []string{"sa"},
		Short:   "Change the service account of pods",
		Long: `Serviceaccount sets the service account of the pods of a workload. It does not check that the
service account exists. A SidecarSet has none: its containers use the one of the pod.

` + templateText + `

` + edit.DescribeKinds(o.Allowed),
		Example: `  regatta set serviceaccount clone/web web
  regatta set sa ads --all node-reader`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exit.UsageErrorf("want KIND/NAME... and then the name of a service account")
			}
			last := len(args) - 1
			if wrong := validation.IsDNS1123Subdomain(args[last]); len(wrong) > 0 {
				return exit.UsageErrorf("%q is not the name of a service account; write it after the objects: %s", args[last], wrong[0])
			}
			set := func(object *unstructured.Unstructured, podSpec edit.Path) error {
				return setServiceAccount(object, podSpec, args[last])
			}
			return changePodSpecs(cmd, o, args[:last], "serviceaccount updated", set)
		},
	}
	o.AddFlags(cmd)
	o.AddPreviewFlag(cmd, preview)
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, true)
	return cmd
}

// setServiceAccount sets serviceAccountName, and its older name serviceAccount if the object has it:
// otherwise the two would contradict each other.
func setServiceAccount(object *unstructured.Unstructured, podSpec edit.Path, name string) error {
	current := ""
	for _, field := range []string{"serviceAccount", "serviceAccountName"} {
		at := append(podSpec[:len(podSpec):len(podSpec)], field)
		value, found, err := unstructured.NestedString(object.Object, at...)
		if err != nil {
			return fmt.Errorf("reading %s: %w", at, err)
		}
		if value != "" {
			current = value
		}
		if !found && field == "serviceAccount" {
			continue
		}
		if err := unstructured.SetNestedField(object.Object, name, at...); err != nil {
			return fmt.Errorf("writing %s: %w", at, err)
		}
	}
	if current == name {
		return edit.ErrUnchanged
	}
	return nil
}
