// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// serviceKind is the kind that expose creates.
var serviceKind = edit.Kind{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("services"), Kind: "Service"}

// exposure has the flags of expose.
type exposure struct {
	*edit.Options
	name, selector, labels string
	ports                  portFlags
	service                serviceFlags
}

// NewExposeCommand makes the command that creates a Service for the pods of a workload.
func NewExposeCommand() *cobra.Command {
	e := &exposure{Options: edit.NewOptions(kindsWithSelector())}
	cmd := &cobra.Command{
		Use:   "expose KIND/NAME [--port PORT] [--target-port NUMBER-OR-NAME] [--name NAME] [flags]",
		Short: "Create a Service for the pods of a workload",
		Long: `Expose creates a Service that selects the pods of a workload by its spec.selector. A
Service knows no expressions, so that a workload with spec.selector.matchExpressions needs
--selector.

Without --port the Service has the ports of the containers in the pod template, with their
protocols. It has the name and the labels of the workload unless flags say otherwise.

` + edit.DescribeKinds(e.Allowed),
		Example: `  # The ports of the containers
  regatta expose clone/web

  # Port 80 for port 8080 of the pods
  regatta expose clone/web --port 80 --target-port 8080

  # A name in DNS for each pod of a StatefulSet
  regatta expose asts/db --cluster-ip None --name db-headless`,
		DisableFlagsInUseLine: true,
		RunE:                  e.runExpose,
	}
	e.AddCreateFlags(cmd)
	edit.AddCompletion(cmd, e.Cluster, e.Allowed, true)
	f := cmd.Flags()
	f.StringVar(&e.name, "name", "", "name of the Service; that of the workload if unset")
	f.StringVar(&e.selector, "selector", "", "`labels` of the pods, such as app=web; spec.selector.matchLabels of the workload if unset")
	f.StringVarP(&e.labels, "labels", "l", "", "`labels` of the Service, such as app=web; those of the workload if unset")
	e.ports.addFlags(f)
	e.service.addFlags(f)
	return cmd
}

func (e *exposure) runExpose(cmd *cobra.Command, args []string) error {
	if err := e.validateFlags(); err != nil {
		return err
	}
	references, err := parseNamed(e.Options, e.name, args)
	if err != nil {
		return err
	}
	return e.ForEach(cmd.Context(), references, func(object *edit.Object) error {
		service, err := e.buildService(cmd, object)
		if err != nil {
			return err
		}
		return e.CreateObject(cmd.Context(), cmd.OutOrStdout(), serviceKind, service, "exposed")
	})
}

// validateFlags checks the flags before the cluster is asked.
func (e *exposure) validateFlags() error {
	for _, flag := range []struct{ name, text string }{{"selector", e.selector}, {"labels", e.labels}} {
		if _, err := labels.ConvertSelectorToLabelsMap(flag.text); err != nil {
			return exit.UsageErrorf("--%s is %q; want labels with their values, such as app=web,tier=gold: %w", flag.name, flag.text, err)
		}
	}
	if wrong := validation.IsDNS1123Label(e.name); e.name != "" && len(wrong) > 0 {
		return exit.UsageErrorf("--name is %q: %s", e.name, strings.Join(wrong, "; "))
	}
	if err := e.ports.parseFlags(); err != nil {
		return err
	}
	return e.service.validateFlags()
}

func (e *exposure) buildService(cmd *cobra.Command, object *edit.Object) (*unstructured.Unstructured, error) {
	spec := e.service.buildSpec()
	var err error
	if spec.Selector, err = e.readPodLabels(object); err != nil {
		return nil, err
	}
	own, err := readContainerPorts(object)
	if err != nil {
		return nil, err
	}
	spec.Ports = e.ports.buildPorts(own)
	if len(spec.Ports) == 0 && spec.ClusterIP != corev1.ClusterIPNone {
		return nil, exit.RefusalErrorf("no container of %s has a port; give --port", object)
	}
	name := e.name
	if name == "" {
		if name, err = serviceName(object); err != nil {
			return nil, err
		}
	}
	service, err := newObject(cmd, serviceKind, name, &spec)
	if err != nil {
		return nil, err
	}
	service.SetLabels(object.Live.GetLabels())
	if e.labels != "" {
		given, _ := labels.ConvertSelectorToLabelsMap(e.labels) // validateFlags has read it
		service.SetLabels(given)
	}
	return service, nil
}

// serviceName is the name of a workload as a Service may have it: it is shorter, and has no dots.
func serviceName(object *edit.Object) (string, error) {
	name := object.Live.GetName()
	if len(name) > validation.DNS1123LabelMaxLength {
		name = strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "-.")
	}
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return "", exit.RefusalErrorf("a Service cannot have the name of %s; give --name: %s", object, strings.Join(wrong, "; "))
	}
	return name, nil
}

// readPodLabels returns the labels by which the Service selects the pods.
func (e *exposure) readPodLabels(object *edit.Object) (map[string]string, error) {
	if e.selector != "" {
		return labels.ConvertSelectorToLabelsMap(e.selector)
	}
	selector, err := readSelector(object.Live)
	switch {
	case err != nil:
		return nil, err
	case len(selector.MatchExpressions) > 0:
		return nil, exit.RefusalErrorf("%s has spec.selector.matchExpressions, which a Service cannot have; give --selector", object)
	case len(selector.MatchLabels) == 0:
		return nil, exit.RefusalErrorf("spec.selector.matchLabels of %s is empty; give --selector", object)
	}
	return selector.MatchLabels, nil
}
