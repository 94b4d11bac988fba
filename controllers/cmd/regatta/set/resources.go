// SPDX-License-Identifier: Apache-2.0

package set

import (
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"

	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

func resourcesCommand(preview edit.Preview) *cobra.Command {
	o := edit.NewOptions(kindsWithPodSpec())
	var selected pattern
	var limits, requests string
	cmd := &cobra.Command{
		Use:   "resources KIND/NAME... [--limits NAME=QUANTITY,...] [--requests NAME=QUANTITY,...]",
		Short: "Change the limits and requests of containers",
		Long: `Resources sets limits and requests of containers and init containers. Resources that are not
named stay as they are. A quantity of 0 is set and removes nothing.

` + templateText + `

` + edit.DescribeKinds(o.Allowed),
		Example: `  regatta set resources clone/web --limits cpu=1,memory=1Gi --requests cpu=200m,memory=1Gi
  regatta set resources sidecarset/proxy -c envoy --requests cpu=100m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := parseResources(limits, requests)
			if err != nil {
				return err
			}
			if err := selected.validateFlag(); err != nil {
				return err
			}
			set := func(object *unstructured.Unstructured, podSpec edit.Path) error {
				return setResources(object, podSpec, selected, want)
			}
			return changePodSpecs(cmd, o, args, "resource requirements updated", set)
		},
	}
	o.AddFlags(cmd)
	o.AddPreviewFlag(cmd, preview)
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, true)
	selected.addTo(cmd.Flags())
	cmd.Flags().StringVar(&limits, "limits", "", "limits to set, such as cpu=1,memory=1Gi")
	cmd.Flags().StringVar(&requests, "requests", "", "requests to set, such as cpu=200m,memory=1Gi")
	return cmd
}

// newQuantity is a limit or a request that containers are to have.
type newQuantity struct {
	field    string // limits or requests
	name     string
	quantity resource.Quantity
}

// parseResources reads the values of --limits and --requests.
func parseResources(limits, requests string) ([]newQuantity, error) {
	if limits == "" && requests == "" {
		return nil, exit.UsageErrorf("there is nothing to set; want --limits or --requests, such as --limits cpu=1,memory=1Gi")
	}
	var out []newQuantity
	for _, flag := range []struct{ field, text string }{{"limits", limits}, {"requests", requests}} {
		if flag.text == "" {
			continue
		}
		seen := map[string]bool{}
		for _, pair := range strings.Split(flag.text, ",") {
			name, text, found := strings.Cut(pair, "=")
			if !found {
				return nil, exit.UsageErrorf("--%s has %q; want NAME=QUANTITY, such as cpu=1", flag.field, pair)
			}
			if !isContainerResource(name) {
				return nil, exit.UsageErrorf("--%s has %q, which is not the name of a resource; want cpu, memory, ephemeral-storage, "+
					"hugepages-SIZE or a name with a domain such as example.com/gpu", flag.field, name)
			}
			if seen[name] {
				return nil, exit.UsageErrorf("--%s has %s twice; name it once", flag.field, name)
			}
			seen[name] = true
			quantity, err := resource.ParseQuantity(text)
			if err != nil || quantity.Sign() < 0 {
				return nil, exit.UsageErrorf("--%s has %q for %s; want a quantity of 0 or more, such as 500m or 1Gi", flag.field, text, name)
			}
			out = append(out, newQuantity{flag.field, name, quantity})
		}
	}
	return out, nil
}

// isContainerResource is true for names of resources that a container may have.
func isContainerResource(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	if size, ok := strings.CutPrefix(name, corev1.ResourceHugePagesPrefix); ok {
		_, err := resource.ParseQuantity(size)
		return err == nil
	}
	return strings.Contains(name, "/") && len(validation.IsQualifiedName(name)) == 0
}

// setResources sets limits and requests of the selected containers.
func setResources(object *unstructured.Unstructured, podSpec edit.Path, names pattern, want []newQuantity) error {
	all, err := readContainers(object, podSpec)
	if err != nil {
		return err
	}
	selected, err := names.selectContainers(all)
	if err != nil {
		return err
	}
	for _, c := range selected {
		if c.fields["resourcesPolicy"] != nil { // of a container of a SidecarSet
			return exit.RefusalErrorf("%s.resourcesPolicy computes the resources of container %s; "+
				"remove it, or select other containers with --containers", c.path, c.name)
		}
		for _, w := range want {
			if err := w.applyTo(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyTo sets the quantity. One that is the same number in other words stays, since a new text could start
// a rollout.
func (q newQuantity) applyTo(c container) error {
	resources, err := readObject(c.fields, "resources", c.path)
	if err != nil {
		return err
	}
	if resources == nil {
		resources = map[string]any{}
		c.fields["resources"] = resources
	}
	list, err := readObject(resources, q.field, c.path+".resources")
	if err != nil {
		return err
	}
	if list == nil {
		list = map[string]any{}
		resources[q.field] = list
	}
	if current, err := resource.ParseQuantity(fmt.Sprint(list[q.name])); err == nil && current.Cmp(q.quantity) == 0 {
		return nil
	}
	list[q.name] = q.quantity.String()
	return nil
}
