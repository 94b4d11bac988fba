// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConfigurationName is the name of the ConfigMap, in the namespace of the manager, that has whitelists.
const ConfigurationName = "kruise-configuration"

// It is read by its name, only in that namespace.
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get

// Configuration has what an administrator allows in addition to what is always allowed.
type Configuration struct {
	Reader client.Reader
	// Namespace is the namespace of the manager.
	Namespace string
}

// Read reads a key of the ConfigMap, and reports whether it exists. The ConfigMap is read as an unstructured object, which
// clients of a manager do not cache: a cache of all ConfigMaps would be too large for the few reads.
func (c Configuration) Read(ctx context.Context, key string, into any) (bool, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err := c.Reader.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: ConfigurationName}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading ConfigMap %s/%s: %w", c.Namespace, ConfigurationName, err)
	}
	text, ok, err := unstructured.NestedString(object.Object, "data", key)
	if err != nil || !ok || text == "" {
		return false, err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return false, fmt.Errorf("reading %s of ConfigMap %s/%s: %w", key, c.Namespace, ConfigurationName, err)
	}
	return true, nil
}

// ListedWorkloads returns the kinds of the white list at a key, none if it does not exist.
func (c Configuration) ListedWorkloads(ctx context.Context, key string) ([]schema.GroupVersionKind, error) {
	list := struct {
		Workloads []schema.GroupVersionKind
	}{}
	_, err := c.Read(ctx, key, &list)
	return list.Workloads, err
}

// IsWorkloadListed reports whether the white list at a key has a kind of workload, in any version.
func (c Configuration) IsWorkloadListed(ctx context.Context, key string, kind schema.GroupKind) (bool, error) {
	workloads, err := c.ListedWorkloads(ctx, key)
	return slices.ContainsFunc(workloads, func(w schema.GroupVersionKind) bool { return w.GroupKind() == kind }), err
}
