// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/engine/document"
)

// dump is what kubectl get prints.
type dump struct {
	// decode reads CloneSets: those that there are as they are.
	decode func(raw []byte, version string) (*kruise.CloneSet, error)

	sets      []*kruise.CloneSet
	pods      []*corev1.Pod
	nodes     []*corev1.Node
	revisions []*appsv1.ControllerRevision
	claims    []*corev1.PersistentVolumeClaim
	// budgets are those that there are, applied those that are applied with a CloneSet.
	budgets, applied []*policy.PodUnavailableBudget
	namespaces       []*corev1.Namespace
	workloads        []client.Object // of kinds other than CloneSet
}

// read adds the objects of a file: YAML or JSON, documents or lists of them.
func (d *dump) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the fleet: %w", err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := map[string]any{}
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(o) > 0 {
			err = d.add(&unstructured.Unstructured{Object: o})
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
}

func (d *dump) add(o *unstructured.Unstructured) error {
	if o.GetKind() == "" {
		return errors.New("an object has no kind")
	}
	if o.IsList() {
		return o.EachListItem(func(item runtime.Object) error { return d.add(item.(*unstructured.Unstructured)) })
	}
	raw, err := json.Marshal(o.Object)
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	switch o.GroupVersionKind().GroupKind() {
	case kruise.Kind("CloneSet"):
		set, err := d.decode(raw, o.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("reading CloneSet %s: %w", o.GetName(), explained(err))
		}
		d.sets = append(d.sets, set)
	case policy.GroupVersion.WithKind("PodUnavailableBudget").GroupKind():
		b, err := readBudget(raw, o.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("reading PodUnavailableBudget %s: %w", o.GetName(), explained(err))
		}
		d.budgets = append(d.budgets, b)
	case corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind():
		err = put(raw, &d.namespaces)
	case appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind():
		err = workload(raw, &appsv1.Deployment{}, d)
	case appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind():
		err = workload(raw, &appsv1.ReplicaSet{}, d)
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind():
		err = workload(raw, &appsv1.StatefulSet{}, d)
	case corev1.SchemeGroupVersion.WithKind("Pod").GroupKind():
		err = put(raw, &d.pods)
	case corev1.SchemeGroupVersion.WithKind("Node").GroupKind():
		err = put(raw, &d.nodes)
	case corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind():
		err = put(raw, &d.claims)
	case appsv1.SchemeGroupVersion.WithKind("ControllerRevision").GroupKind():
		err = put(raw, &d.revisions)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", o.GetKind(), o.GetName(), explained(err))
	}
	return nil // what else a dump has, no rollout looks at
}

// explained describes an error about a field in the terms of the input file. It
// returns other errors unchanged.
func explained(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return document.Explain(nil, wrong)
	}
	return err
}

func workload(raw []byte, o client.Object, d *dump) error {
	if err := json.Unmarshal(raw, o); err != nil {
		return err
	}
	d.workloads = append(d.workloads, o)
	return nil
}

func put[T any](raw []byte, to *[]*T) error {
	o := new(T)
	if err := json.Unmarshal(raw, o); err != nil {
		return err
	}
	*to = append(*to, o)
	return nil
}
