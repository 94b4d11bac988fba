// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
)

// gatesOf are the feature gates of the manager.
func (i *inspector) gatesOf() (features.Gates, error) {
	gates, err := features.New()
	if err != nil {
		return gates, err
	}
	if err := gates.Set(preflight.ManagerFlags(&i.manager)["feature-gates"]); err != nil {
		return gates, err
	}
	return gates, gates.ResolveDependencies(findManagerEnv(&i.manager, "CUSTOM_RESOURCE_ENABLE"))
}

// checkGates reports objects that no controller acts on, since their gates are off.
func (i *inspector) checkGates(ctx context.Context, found bool) {
	if !found {
		return
	}
	gates, err := i.gatesOf()
	if err != nil {
		i.addFinding(Finding{Blocks, "gates", i.managerObject(), "--feature-gates", err.Error(), "helm upgrade " + i.Release + " charts/kruise --reset-then-reuse-values --set featureGates=... without it"})
		return
	}
	off := 0
	for _, key := range slices.Sorted(maps.Keys(preflight.ServedVersions())) {
		group, kind, _ := strings.Cut(key, "/")
		missing := gatedkinds.DescribeMissing(kind, gates.Enabled)
		if missing == "" {
			continue
		}
		off++
		versions := preflight.ServedVersions()[key]
		i.checkGatedKind(ctx, schema.GroupVersionKind{Group: group, Version: versions[len(versions)-1], Kind: kind}, missing)
	}
	i.addFinding(Finding{Fine, "gates", i.managerObject(), "--feature-gates", fmt.Sprintf("the gates of %d kinds are off", off), ""})
}

func (i *inspector) checkGatedKind(ctx context.Context, gvk schema.GroupVersionKind, missing string) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := i.askServer(ctx, func(ctx context.Context) error { return i.List(ctx, list, client.Limit(1)) })
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
	case err != nil:
		i.addError("gates", "kind "+gvk.Kind, "list", err)
	case len(list.Items) > 0:
		why, fix, _ := strings.Cut(missing, "; ")
		i.addFinding(Finding{Warns, "gates", nameOf(gvk.Kind, list.Items[0].Namespace, list.Items[0].Name), "feature gates", "there are such objects, and " + why, fix})
	}
}

// checkAPIService checks whether the API server reaches the API that regatta why uses.
func (i *inspector) checkAPIService(ctx context.Context) {
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	object := "APIService " + explain.APIService
	err := i.askServer(ctx, func(ctx context.Context) error {
		return i.Get(ctx, client.ObjectKey{Name: explain.APIService}, service)
	})
	switch {
	case apierrors.IsNotFound(err):
		i.addFinding(Finding{Fine, "webhooks", object, "metadata.name", "it is not installed: regatta why needs --endpoint", ""})
		return
	case err != nil:
		i.addError("webhooks", object, "get", err)
		return
	}
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			i.addFinding(Finding{Fine, "webhooks", object, "status.conditions Available", "the API server reaches it", ""})
			return
		}
		i.addFinding(Finding{Warns, "webhooks", object, "status.conditions Available", fmt.Sprintf("%v: %v; while it is not available namespaces may not be deleted", condition["reason"], condition["message"]),
			"let the API server reach port 8443 of the managers, or --set manager.decisions.apiService.enabled=false"})
		return
	}
	i.addFinding(Finding{Warns, "webhooks", object, "status.conditions Available", "the API server does not say whether it reaches it", "kubectl get apiservice " + explain.APIService})
}
