// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// sidecarSet has the flags of a SidecarSet.
type sidecarSet struct {
	*creation
	spec         kruise.SidecarSetSpec
	containers   []corev1.Container
	namespace    string
	init         bool
	injectPolicy kruise.PodInjectPolicyType
}

func newSidecarSetCommand() *cobra.Command {
	s := &sidecarSet{creation: newCreation("sidecarsets", "SidecarSet", validation.NameIsDNSLabel)}
	s.kind.ClusterScoped = true
	s.options.Cluster = s.options.Cluster.WithoutNamespace()
	s.build, s.takesCommand = s.buildSet, true
	f, strategy := s.flags, &s.spec.UpdateStrategy
	addSelectorFlag(f, &s.spec.Selector, "selector", "`labels` of the pods that get the containers, such as app=web")
	addSelectorFlag(f, &s.spec.NamespaceSelector, "namespace-selector",
		"`labels` of the namespaces of the pods; all namespaces if no flag selects some")
	addNameFlag(f, &s.namespace, "in-namespace", "name of the `namespace` of the pods", validation.ValidateNamespaceName)
	f.Func("image",
		"`[CONTAINER=]IMAGE` of a container, which has the name of the image without CONTAINER; repeat it for several containers",
		s.addContainer)
	f.BoolVar(&s.init, "init", false, "add the containers to the init containers of the pods")
	addChoiceFlag(f, &s.injectPolicy, "inject-policy",
		"`BeforeAppContainer|AfterAppContainer`: where the containers go among those of the pod",
		kruise.BeforeAppContainerType, kruise.AfterAppContainerType)
	addAmountFlag(f, &strategy.MaxUnavailable, "max-unavailable",
		"`N|P%` of the pods that an update may make unavailable; 1 if unset")
	addAmountFlag(f, &strategy.Partition, "partition",
		"`N|P%` of the pods that an update leaves at the old revision; 0 if unset")
	f.BoolVar(&strategy.Paused, "paused", false, "update no running pods; new pods get the containers")
	return s.completeCommand(&cobra.Command{
		Use:   "sidecarset NAME --selector LABELS --image [CONTAINER=]IMAGE... [flags] [-- COMMAND [ARGS...]]",
		Short: "Add containers to pods as they are created",
		Long: `Create a SidecarSet. It adds containers to new pods that --selector selects, and updates
the images of these containers in running pods. Pods that exist already do not get them.
COMMAND takes the place of the entrypoint of the image, for a SidecarSet with one
container.

A container replaces a container of the pod that has the same name. A SidecarSet is in
no namespace. Without --namespace-selector and --in-namespace it selects pods of all
namespaces.`,
		Example: `  # Add a proxy to the pods of an app in one namespace
  regatta create sidecarset proxy --selector app=web --in-namespace shop --image envoy=envoyproxy/envoy:v1.31.0

  # Add an init container that waits for a database
  regatta create sidecarset wait --selector db=yes --init --image postgres:17 -- sh -c 'until pg_isready -h db; do sleep 1; done'`,
	})
}

// addContainer reads one value of --image.
func (s *sidecarSet) addContainer(text string) error {
	name, image, named := strings.Cut(text, "=")
	if !named {
		name, image = imageBaseName(text), text
	}
	if err := validateImage(image); err != nil {
		return err
	}
	if wrong := validation.NameIsDNSLabel(name, false); len(wrong) > 0 {
		return fmt.Errorf("%q is no name of a container; write CONTAINER=IMAGE: %s", name, strings.Join(wrong, "; "))
	}
	if slices.ContainsFunc(s.containers, func(c corev1.Container) bool { return c.Name == name }) {
		return fmt.Errorf("there are two containers %q; write CONTAINER=IMAGE to name them", name)
	}
	s.containers = append(s.containers, corev1.Container{Name: name, Image: image})
	return nil
}

// imageBaseName is the last part of the name of an image, without its tag and digest.
func imageBaseName(image string) string {
	base := image[strings.LastIndex(image, "/")+1:]
	if i := strings.IndexAny(base, ":@"); i >= 0 {
		base = base[:i]
	}
	return base
}

func (s *sidecarSet) buildSet(_ context.Context, meta metav1.ObjectMeta, command []string) (*unstructured.Unstructured, error) {
	switch {
	case s.spec.Selector == nil:
		return nil, errors.New("--selector is missing: give labels of the pods that get the containers, such as app=web")
	case len(s.containers) == 0:
		return nil, errors.New("--image is missing: name the image of a container")
	case len(command) > 0 && len(s.containers) > 1:
		return nil, errors.New("COMMAND goes with one --image: it is not clear which container gets it")
	case s.namespace != "" && s.spec.NamespaceSelector != nil:
		return nil, errors.New("--namespace-selector and --in-namespace exclude each other")
	}
	spec := s.spec
	if s.namespace != "" {
		spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}}
	}
	var containers []kruise.SidecarContainer
	for _, container := range s.containers {
		container.Command = command
		containers = append(containers, kruise.SidecarContainer{Container: container, PodInjectPolicy: s.injectPolicy})
	}
	if s.init {
		spec.InitContainers = containers
	} else {
		spec.Containers = containers
	}
	return encodeObject(&kruise.SidecarSet{TypeMeta: s.typeMeta(), ObjectMeta: meta, Spec: spec})
}
