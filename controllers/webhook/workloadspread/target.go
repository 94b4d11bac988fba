// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

func (v validator) validateTarget(ctx context.Context, ws *v1beta1.WorkloadSpread, found *rules.Findings) {
	path, target := field.NewPath("spec", "targetRef"), ws.Spec.TargetReference
	version, err := schema.ParseGroupVersion(target.APIVersion)
	if err != nil {
		found.AddErrors(field.Invalid(path.Child("apiVersion"), target.APIVersion, err.Error()))
		return
	}
	kind := version.WithKind(target.Kind).GroupKind()
	known := slices.Contains(spread.SupportedKinds(), kind)
	if !known {
		if known, err = v.configuration.IsWorkloadListed(ctx, v1beta1.WorkloadSpreadWhiteListKey, kind); err != nil {
			found.AddErrors(field.InternalError(path, err))
			return
		}
	}
	if !known {
		found.AddErrors(field.Invalid(path, kind.String(), "TargetReference's GroupKind is not permitted."))
		return
	}
	v.validateAlone(ctx, ws, path, found)
}

// validateAlone refuses a second WorkloadSpread of the same workload: pods would use only the one that is listed first.
func (v validator) validateAlone(ctx context.Context, spread *v1beta1.WorkloadSpread, path *field.Path, found *rules.Findings) {
	list := &v1beta1.WorkloadSpreadList{}
	if err := v.reader.List(ctx, list, client.InNamespace(spread.Namespace)); err != nil {
		found.AddErrors(field.InternalError(path, fmt.Errorf("listing WorkloadSpreads: %w", err)))
		return
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name != spread.Name && other.DeletionTimestamp == nil && rules.SameWorkload(other.Spec.TargetReference, spread.Spec.TargetReference) {
			found.AddErrors(field.Invalid(path, spread.Spec.TargetReference.Name, fmt.Sprintf("ws.spec.targetRef is in conflict with other WorkloadSpread %s", other.Name)))
		}
	}
}
