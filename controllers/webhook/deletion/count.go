// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/engine/decision/protection"
)

const (
	// page is how many objects are listed at a time, and pages how often at most: one dependent is enough
	// to refuse, and the number is only for users.
	page  = 500
	pages = 10
	// countFor is how long counting may take. The API server waits for the answer
	// for 3 seconds by default.
	countFor = 1500 * time.Millisecond
)

// errTooMany reports that none of the listed objects counts, but that there are more.
var errTooMany = fmt.Errorf("the first %d do not count, and there are more", page*pages)

// countDependents counts the objects that would be deleted with an object, and adds the counts to the input.
func (h *Handler) countDependents(ctx context.Context, in *protection.DeletionInput, raw []byte) {
	ctx, cancel := context.WithTimeout(ctx, countFor)
	defer cancel()
	var err error
	switch in.Kind.Cascading {
	case protection.CascadeNamespace:
		err = h.countNamespace(ctx, in)
	case protection.CascadeCustomResources:
		if !in.Gates.CRDCascading {
			return // the policies do not use the count
		}
		var n int
		if n, err = h.customResources(ctx, raw); err == nil {
			in.CustomResources = &n
		}
	}
	if err != nil {
		in.Uncounted = err.Error()
	}
}

func (h *Handler) countNamespace(ctx context.Context, in *protection.DeletionInput) error {
	// The API server selects the pods that are active by phase. Pods that are being deleted are left out below.
	active := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
	pods, err := countNotDeleted(ctx, h.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(in.Object.Name), active)
	if err != nil {
		return fmt.Errorf("counting pods: %w", err)
	}
	in.Pods = &pods
	claims := 0
	list := &corev1.PersistentVolumeClaimList{}
	for range pages {
		if err := h.Live.List(ctx, list, client.InNamespace(in.Object.Name), client.Limit(page), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("counting volume claims: %w", err)
		}
		for i := range list.Items {
			if c := &list.Items[i]; c.Status.Phase == corev1.ClaimBound && c.DeletionTimestamp == nil {
				claims++
			}
		}
		if list.Continue == "" {
			break
		}
	}
	if list.Continue != "" && claims == 0 {
		return fmt.Errorf("counting volume claims: %w", errTooMany)
	}
	in.Claims = &claims
	return nil
}

func (h *Handler) customResources(ctx context.Context, raw []byte) (int, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(raw, crd); err != nil {
		return 0, fmt.Errorf("reading the custom resource definition: %w", err)
	}
	stored := schema.GroupVersionResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			stored.Version = v.Name
		}
	}
	n, err := countNotDeleted(ctx, h.Metadata.Resource(stored), metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err) && !isEstablished(crd):
		return 0, nil // a CRD that is not established has no objects
	case apierrors.IsForbidden(err):
		return 0, fmt.Errorf("the manager may not list %s, which it may if the chart's value installation.roleListGroups has %s", stored.GroupResource(), stored.Group)
	case err != nil:
		return 0, fmt.Errorf("counting %s: %w", stored.GroupResource(), err)
	}
	return n, nil
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// countNotDeleted counts objects that are not being deleted. If there are too many to list, the count is a lower
// bound.
func countNotDeleted(ctx context.Context, of metadata.ResourceInterface, options metav1.ListOptions) (int, error) {
	n := 0
	for range pages {
		options.Limit = page
		list, err := of.List(ctx, options)
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return 0, fmt.Errorf("the API server took more than %s", countFor)
			}
			return 0, err
		}
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				n++
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return n, nil
		}
	}
	if n == 0 {
		return 0, errTooMany
	}
	return n, nil
}
