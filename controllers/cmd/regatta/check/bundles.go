// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// checkBundles reports policies that are not enforced as their bundles say.
func (i *inspector) checkBundles(ctx context.Context) {
	all, bad := 0, 0
	look := func(b policyv1alpha1.AnyPolicyBundle) {
		all++
		if !i.checkBundle(b) {
			bad++
		}
	}
	cluster := &policyv1alpha1.ClusterPolicyBundleList{}
	ok := i.listKinds(ctx, "ClusterPolicyBundles", cluster, func() {
		for n := range cluster.Items {
			look(&cluster.Items[n])
		}
	})
	namespaced := &policyv1alpha1.PolicyBundleList{}
	ok = i.listKinds(ctx, "PolicyBundles", namespaced, func() {
		for n := range namespaced.Items {
			look(&namespaced.Items[n])
		}
	}) && ok
	if ok && bad == 0 {
		i.addFinding(Finding{Fine, "bundles", "PolicyBundles and ClusterPolicyBundles", "status.conditions Ready", fmt.Sprintf("%d are ready", all), ""})
	}
}

// listKinds lists objects whose CRD may be missing; checkCRDs reports a missing CRD.
func (i *inspector) listKinds(ctx context.Context, object string, list client.ObjectList, page func()) bool {
	gvk, err := i.GroupVersionKindFor(list)
	if err == nil {
		_, err = i.RESTMapper().RESTMapping(gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, "List")).GroupKind(), gvk.Version)
	}
	if apimeta.IsNoMatchError(err) {
		return false
	}
	if err != nil {
		i.addError("bundles", object, "discover", err)
		return false
	}
	return i.listPages(ctx, "bundles", object, list, page)
}

// checkBundle reports whether nothing is wrong with a bundle.
func (i *inspector) checkBundle(b policyv1alpha1.AnyPolicyBundle) bool {
	kind := policyv1alpha1.KindOf(b).Kind
	object, status := nameOf(kind, b.GetNamespace(), b.GetName()), b.GetStatus()
	in := ""
	if b.GetNamespace() != "" {
		in = " -n " + b.GetNamespace()
	}
	look := "regatta policy status " + strings.ToLower(kind) + "/" + b.GetName() + in
	fine := true
	ready := apimeta.FindStatusCondition(status.Conditions, policyv1alpha1.PolicyBundleReady)
	switch {
	case ready == nil || ready.ObservedGeneration < b.GetGeneration() || status.ObservedGeneration < b.GetGeneration():
		i.addFinding(Finding{Warns, "bundles", object, "status.observedGeneration", "the manager has not looked at its newest spec", look})
		fine = false
	case ready.Status != metav1.ConditionTrue:
		i.addFinding(Finding{Warns, "bundles", object, "status.conditions Ready", ready.Reason + ": " + ready.Message, look})
		fine = false
	}
	if w := status.Withheld; w != nil {
		i.addFinding(Finding{Blocks, "bundles", object, "status.withheld", fmt.Sprintf(policyv1alpha1.PolicyBundleWithheldMessage, w.Revision), "ship another revision, or delete it; " + look + " says why"})
		fine = false
	}
	for _, r := range status.Replicas {
		field := "status.replicas " + r.Name
		switch {
		case r.Strict != "":
			i.addFinding(Finding{Blocks, "bundles", object, field + " strict", "it cannot run the active revision (" + r.Strict + "), and holds and refuses where that takes part: " + r.Problem, look})
		case r.RolledBack != "":
			i.addFinding(Finding{Warns, "bundles", object, field + " rolledBack", "it gave revision " + truncateText(r.RolledBack, 12) + " up, as its decisions did not end in time: " + r.Problem, "ship a revision that decides faster; " + look})
		case r.Problem != "":
			i.addFinding(Finding{Warns, "bundles", object, field + " problem", r.Problem, look})
		default:
			continue
		}
		fine = false
	}
	return fine
}
