// SPDX-License-Identifier: Apache-2.0

package set

import (
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"

	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// anyContainer selects all containers of a pod spec.
const anyContainer = "*"

func imageCommand(preview edit.Preview) *cobra.Command {
	o := edit.NewOptions(kindsWithPodSpec())
	cmd := &cobra.Command{
		Use:   "image KIND/NAME... CONTAINER=IMAGE...",
		Short: "Change the images of containers",
		Long: `Image sets the images of containers and init containers. The name * selects all of them.
An object that lacks a named container is left as it is.

` + templateText + `

` + edit.DescribeKinds(o.Allowed),
		Example: `  regatta set image clone/web main=nginx:1.27
  regatta set image sidecarset/proxy envoy=envoy:1.31 init=envoy-init:1.31
  regatta set image asts --all '*=registry.example.com/db:7' --dry-run=server`,
		RunE: func(cmd *cobra.Command, args []string) error {
			references, pairs, err := splitImages(args)
			if err != nil {
				return err
			}
			images, err := parseImages(pairs)
			if err != nil {
				return err
			}
			set := func(object *unstructured.Unstructured, podSpec edit.Path) error {
				return setImages(object, podSpec, images)
			}
			return changePodSpecs(cmd, o, references, "image updated", set)
		},
	}
	o.AddFlags(cmd)
	o.AddPreviewFlag(cmd, preview)
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, true)
	return cmd
}

// splitImages separates references to objects from images, which come last.
func splitImages(args []string) (references, pairs []string, err error) {
	for _, arg := range args {
		switch isPair := strings.Contains(arg, "="); {
		case isPair:
			pairs = append(pairs, arg)
		case len(pairs) > 0:
			return nil, nil, exit.UsageErrorf("%q comes after an image; name the objects first and then CONTAINER=IMAGE", arg)
		default:
			references = append(references, arg)
		}
	}
	if len(pairs) == 0 {
		return nil, nil, exit.UsageErrorf("there is no image to set; want CONTAINER=IMAGE")
	}
	return references, pairs, nil
}

// newImage is the image that a container is to have.
type newImage struct{ container, image string }

// parseImages reads CONTAINER=IMAGE.
func parseImages(pairs []string) ([]newImage, error) {
	var out []newImage
	seen := map[string]bool{}
	for _, pair := range pairs {
		name, image, _ := strings.Cut(pair, "=")
		switch {
		case name != anyContainer && len(validation.IsDNS1123Label(name)) > 0:
			return nil, exit.UsageErrorf("%q in %q is not the name of a container; want CONTAINER=IMAGE", name, pair)
		case image == "":
			return nil, exit.UsageErrorf("the image of container %s is empty; want CONTAINER=IMAGE", name)
		case strings.ContainsFunc(image, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
			return nil, exit.UsageErrorf("the image of container %s is %q; an image has no spaces", name, image)
		case seen[name]:
			return nil, exit.UsageErrorf("container %s has two images; name each container once", name)
		}
		seen[name] = true
		out = append(out, newImage{name, image})
	}
	if seen[anyContainer] && len(out) > 1 {
		return nil, exit.UsageErrorf("*=IMAGE is of all containers; name no other container next to it")
	}
	return out, nil
}

// setImages sets the images of containers.
func setImages(object *unstructured.Unstructured, podSpec edit.Path, images []newImage) error {
	all, err := readContainers(object, podSpec)
	if err != nil {
		return err
	}
	for _, want := range images {
		found := false
		for _, c := range all {
			if want.container == anyContainer || want.container == c.name {
				c.fields["image"], found = want.image, true
			}
		}
		if !found {
			return exit.RefusalErrorf("there is no container %s; there are %s", want.container, joinNames(all))
		}
	}
	return nil
}
