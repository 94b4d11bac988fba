// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkCRDs checks whether the API server serves the kinds of the chart, with the schemas that this program has.
func (i *inspector) checkCRDs(ctx context.Context, of serving) {
	known, err := chartCRDs()
	if err != nil {
		i.addError("crds", "CRDs", "read", err)
		return
	}
	same := make([]bool, len(known))
	inParallel(len(known), func(k int) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(known[k].(*unstructured.Unstructured).Object, crd); err != nil {
			i.addError("crds", known[k].GetName(), "read", err)
			return
		}
		same[k] = i.checkCRD(ctx, crd, of)
	})
	n := len(slices.DeleteFunc(same, func(ok bool) bool { return !ok }))
	if n > 0 {
		i.addFinding(Finding{Fine, "crds", "CRDs", "spec.versions", fmt.Sprintf("%d of %d are established, with the schemas that this program knows", n, len(known)), ""})
	}
}

// checkCRD reports whether nothing is wrong with a CRD.
func (i *inspector) checkCRD(ctx context.Context, known *apiextensionsv1.CustomResourceDefinition, of serving) bool {
	object, found := "CRD "+known.Name, &apiextensionsv1.CustomResourceDefinition{}
	err := i.askServer(ctx, func(ctx context.Context) error { return i.Get(ctx, client.ObjectKeyFromObject(known), found) })
	upgrade := "helm upgrade " + i.Release + " charts/kruise; with crds.managed=false, kubectl apply --server-side -f charts/kruise/files/crds"
	switch {
	case apierrors.IsNotFound(err):
		i.addFinding(Finding{Blocks, "crds", object, "metadata.name", "it is not there, and the manager waits for it", upgrade})
		return false
	case err != nil:
		i.addError("crds", object, "get", err)
		return false
	case found.DeletionTimestamp != nil:
		i.addFinding(Finding{Blocks, "crds", object, "metadata.deletionTimestamp", "it is being deleted, and all its objects with it", "let it end, then " + upgrade})
		return false
	}
	fine := true
	for _, want := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.Established, apiextensionsv1.NamesAccepted} {
		at := slices.IndexFunc(found.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool { return c.Type == want })
		if at < 0 || found.Status.Conditions[at].Status != apiextensionsv1.ConditionTrue {
			message := "the API server does not say so yet"
			if at >= 0 {
				message = found.Status.Conditions[at].Reason + ": " + found.Status.Conditions[at].Message
			}
			i.addFinding(Finding{Blocks, "crds", object, "status.conditions " + string(want), message, "kubectl get crd " + known.Name + " -o yaml"})
			fine = false
		}
	}
	if where := differenceOf(known, found); where != "" {
		i.addFinding(Finding{Warns, "crds", object, where, "it is not as this program knows it: another version of the chart made it, and fields may be dropped or refused", upgrade + "; or use the regatta of its version"})
		fine = false
	}
	if c := found.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
		config := c.Webhook.ClientConfig
		f := i.judgeBundle(object, "spec.conversion.webhook.clientConfig.caBundle", config.CABundle, config.URL != nil, of)
		if f.Status != Fine && (config.URL == nil || len(config.CABundle) > 0) { // the checks of the webhooks of the same URL report the rest
			i.addFinding(f)
			fine = false
		}
	}
	return fine
}

// differenceOf is the first place at which the versions of two CRDs differ, empty for none.
func differenceOf(known, found *apiextensionsv1.CustomResourceDefinition) string {
	versions := func(crd *apiextensionsv1.CustomResourceDefinition) any {
		out := map[string]any{}
		for _, v := range crd.Spec.Versions {
			text, _ := json.Marshal(map[string]any{"served": v.Served, "storage": v.Storage, "schema": v.Schema, "subresources": v.Subresources}) // what was read can be written
			var plain any
			_ = json.Unmarshal(text, &plain)
			out[v.Name] = plain
		}
		return out
	}
	return firstDifference("spec.versions", versions(known), versions(found))
}

// firstDifference compares values as JSON has them.
func firstDifference(path string, a, b any) string {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return path
		}
		for _, key := range slices.Sorted(maps.Keys(a)) {
			if where := firstDifference(path+"."+key, a[key], b[key]); where != "" {
				return where
			}
		}
		for _, key := range slices.Sorted(maps.Keys(b)) {
			if _, ok := a[key]; !ok {
				return path + "." + key
			}
		}
		return ""
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return path
		}
		for n := range a {
			if where := firstDifference(fmt.Sprintf("%s[%d]", path, n), a[n], b[n]); where != "" {
				return where
			}
		}
		return ""
	}
	if a != b {
		return strings.TrimSuffix(path, ".")
	}
	return ""
}
