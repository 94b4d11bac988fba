// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ApplyScale sets spec.replicas of an object through its subresource scale and returns the object as the
// cluster has it then. With --dry-run it returns what the object would become. check is asked about each
// state of the object that is to be scaled. An object that has these replicas already is ErrUnchanged.
func (o *Options) ApplyScale(
	ctx context.Context, object *Object, replicas int32, check func(*unstructured.Unstructured) error,
) (*unstructured.Unstructured, error) {
	return object.writeLatest(ctx, "scaling", func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := check(live); err != nil {
			return nil, err
		}
		return o.writeScale(ctx, object, live, replicas)
	})
}

// writeScale sets the replicas of one state of an object.
func (o *Options) writeScale(
	ctx context.Context, object *Object, live *unstructured.Unstructured, replicas int32,
) (*unstructured.Unstructured, error) {
	current, found, err := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if err != nil {
		return nil, fmt.Errorf("reading spec.replicas: %w", err)
	}
	if found && current == int64(replicas) {
		return nil, ErrUnchanged
	}
	want := live.DeepCopy()
	if err := unstructured.SetNestedField(want.Object, int64(replicas), "spec", "replicas"); err != nil {
		return nil, fmt.Errorf("writing spec.replicas: %w", err)
	}
	if o.dryRun == dryRunClient {
		return want, nil
	}
	options := metav1.UpdateOptions{FieldManager: o.fieldManager, DryRun: o.serverDryRun()}
	written, err := object.client.Update(ctx, newScale(live, replicas), options, "scale")
	if err != nil {
		return nil, err
	}
	if o.IsDryRun() {
		return want, nil
	}
	if newest, err := object.client.Get(ctx, live.GetName(), metav1.GetOptions{}); err == nil {
		return newest, nil
	}
	want.SetResourceVersion(written.GetResourceVersion()) // the object is scaled, also if it cannot be read again
	return want, nil
}

// newScale is the subresource scale of an object with other replicas. It is made from the object and not
// read: the API server has none to read while spec.replicas is not set.
func newScale(of *unstructured.Unstructured, replicas int32) *unstructured.Unstructured {
	scale := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(replicas)}}}
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	scale.SetNamespace(of.GetNamespace())
	scale.SetName(of.GetName())
	scale.SetUID(of.GetUID())
	scale.SetResourceVersion(of.GetResourceVersion())
	return scale
}
