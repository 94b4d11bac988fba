// SPDX-License-Identifier: Apache-2.0

// Package pods has the commands about the pods of a workload: expose and autoscale create an object for them, exec and
// logs reach their containers.
package pods

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// kindsWithSelector are the kinds whose spec.selector selects their pods.
func kindsWithSelector() []edit.Kind {
	return edit.SelectKinds(func(k edit.Kind) bool { return k.Scalable || k.Kind == "DaemonSet" })
}

// kindsWithPods are the kinds whose pods can be found by a selector of labels.
func kindsWithPods() []edit.Kind {
	return edit.SelectKinds(func(k edit.Kind) bool { return k.Scalable || k.Kind == "DaemonSet" || isBroadcastJob(k) })
}

func isBroadcastJob(k edit.Kind) bool { return k.Kind == "BroadcastJob" }

// readSelector returns spec.selector of a workload.
func readSelector(object *unstructured.Unstructured) (*metav1.LabelSelector, error) {
	fields, _, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, selector); err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	return selector, nil
}

// podSelector returns the selector of the pods of a workload. A BroadcastJob has none in its spec: its controller labels
// the pods.
func podSelector(object *edit.Object) (labels.Selector, error) {
	if isBroadcastJob(object.Kind) {
		return labels.SelectorFromSet(labels.Set{kruise.BroadcastJobControllerUIDKey: string(object.Live.GetUID())}), nil
	}
	selector, err := readSelector(object.Live)
	if err != nil {
		return nil, err
	}
	out, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	return out, nil
}

// newObject makes an object with a spec. It has a namespace only if the user named one, so that a printed manifest can be
// applied to any namespace.
func newObject(cmd *cobra.Command, kind edit.Kind, name string, spec any) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the %s: %w", kind.Kind, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	object.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind))
	object.SetName(name)
	if flag := cmd.Flags().Lookup("namespace"); flag.Changed {
		object.SetNamespace(flag.Value.String())
	}
	return object, nil
}

// parseNamed reads the objects that a command creates another object for. --name names one object only.
func parseNamed(o *edit.Options, name string, args []string) ([]edit.Reference, error) {
	references, err := o.ParseReferences(args)
	if err != nil {
		return nil, exit.UsageError(err)
	}
	if name != "" && len(references) > 1 {
		return nil, exit.UsageErrorf("--name is the name of one object; name one %s", references[0].Kind.Kind)
	}
	return references, nil
}

// requireChoice returns a usage error if a flag that was given has none of the allowed values.
func requireChoice(flag, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	last := len(allowed) - 1
	return exit.UsageErrorf("--%s is %q; want %s or %s", flag, value, strings.Join(allowed[:last], ", "), allowed[last])
}
