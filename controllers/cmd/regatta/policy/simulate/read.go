// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/manifest"
	"github.com/regatta-sh/regatta/engine/document"
)

// dump has the objects that kubectl get prints.
type dump struct {
	// decode reads workloads that can be simulated, as they are in the cluster.
	decode func(k kind, raw []byte, version string) (workload, error)

	simulated []workload
	pods      []*corev1.Pod
	nodes     []*corev1.Node
	revisions []*appsv1.ControllerRevision
	claims    []*corev1.PersistentVolumeClaim
	// budgets are the budgets in the cluster, applied those that are applied with a workload.
	budgets, applied []*policy.PodUnavailableBudget
	namespaces       []*corev1.Namespace
	others           []client.Object // workloads of kinds that are not simulated
}

// readObjects adds the objects of a file.
func (d *dump) readObjects(path string) error { return manifest.ForEachObject(path, d.addObject) }

func (d *dump) addObject(o *unstructured.Unstructured) error {
	raw, err := json.Marshal(o.Object)
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if k, ok := kindOf(o.GroupVersionKind().GroupKind()); ok {
		w, err := d.decode(k, raw, o.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("reading %s %s: %w", k.Kind, o.GetName(), explainError(err))
		}
		d.simulated = append(d.simulated, w)
		return nil
	}
	switch o.GroupVersionKind().GroupKind() {
	case policy.GroupVersion.WithKind("PodUnavailableBudget").GroupKind():
		b, err := readBudget(raw, o.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("reading PodUnavailableBudget %s: %w", o.GetName(), explainError(err))
		}
		d.budgets = append(d.budgets, b)
	case corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind():
		err = appendDecoded(raw, &d.namespaces)
	case appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind():
		err = decodeOther(raw, &appsv1.Deployment{}, d)
	case appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind():
		err = decodeOther(raw, &appsv1.ReplicaSet{}, d)
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind():
		err = decodeOther(raw, &appsv1.StatefulSet{}, d)
	case corev1.SchemeGroupVersion.WithKind("Pod").GroupKind():
		err = appendDecoded(raw, &d.pods)
	case corev1.SchemeGroupVersion.WithKind("Node").GroupKind():
		err = appendDecoded(raw, &d.nodes)
	case corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind():
		err = appendDecoded(raw, &d.claims)
	case appsv1.SchemeGroupVersion.WithKind("ControllerRevision").GroupKind():
		err = appendDecoded(raw, &d.revisions)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", o.GetKind(), o.GetName(), explainError(err))
	}
	return nil // rollouts do not depend on other objects of a dump
}

// explainError describes an error about a field in the terms of the input file. It
// returns other errors unchanged.
func explainError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return document.ExplainError(nil, wrong)
	}
	return err
}

func decodeOther(raw []byte, o client.Object, d *dump) error {
	if err := json.Unmarshal(raw, o); err != nil {
		return err
	}
	d.others = append(d.others, o)
	return nil
}

func appendDecoded[T any](raw []byte, to *[]*T) error {
	o := new(T)
	if err := json.Unmarshal(raw, o); err != nil {
		return err
	}
	*to = append(*to, o)
	return nil
}
