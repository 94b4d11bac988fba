// SPDX-License-Identifier: Apache-2.0

package persistentpodstate

import (
	"context"
	"fmt"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

type validator struct {
	reader        client.Reader
	configuration rules.Configuration
}

func (v validator) validateSpec(ctx context.Context, state, old *v1beta1.PersistentPodState, found *rules.Findings) {
	spec := field.NewPath("spec")
	if old == nil { // the target cannot change, but the white list may have changed since
		v.validateTarget(ctx, state, spec.Child("targetRef"), found)
	}
	if required := state.Spec.RequiredPersistentTopology; required != nil {
		validateKeys(required.Keys, spec.Child("requiredPersistentTopology", "keys"), found)
	}
	for i, term := range state.Spec.PreferredPersistentTopology {
		at := spec.Child("preferredPersistentTopology").Index(i)
		if term.Weight == 0 {
			found.AddWarning(at.Child("weight"), "no pod may have a preference of weight 0; 1 is the least.")
		}
		validateKeys(term.Preference.Keys, at.Child("preference", "keys"), found)
	}
	for i, annotation := range state.Spec.PersistentPodAnnotations { // keys of annotations may have upper case letters in the prefix
		found.AddErrors(metav1validation.ValidateLabelName(strings.ToLower(annotation.Key), spec.Child("persistentPodAnnotations").Index(i).Child("key"))...)
	}
}

// validateKeys requires valid keys of labels: a pod that selects its node by an invalid key is refused.
func validateKeys(keys []string, path *field.Path, found *rules.Findings) {
	for i, key := range keys {
		found.AddErrors(metav1validation.ValidateLabelName(key, path.Index(i))...)
	}
}

func (v validator) validateTarget(ctx context.Context, state *v1beta1.PersistentPodState, path *field.Path, found *rules.Findings) {
	target := state.Spec.TargetReference
	version, err := schema.ParseGroupVersion(target.APIVersion)
	if err != nil {
		found.AddErrors(field.Invalid(path.Child("apiVersion"), target.APIVersion, err.Error()))
		return
	}
	kind := version.WithKind(target.Kind).GroupKind()
	known := v1beta1.RemembersPods(kind)
	if !known {
		if known, err = v.configuration.IsWorkloadListed(ctx, v1beta1.PersistentPodStateWhiteListKey, kind); err != nil {
			found.AddErrors(field.InternalError(path, err))
			return
		}
	}
	if !known {
		found.AddErrors(field.Invalid(path, kind.String(), "must be a StatefulSet of apps or apps.kruise.io, or a kind of the white list "+v1beta1.PersistentPodStateWhiteListKey))
		return
	}
	v.validateAlone(ctx, state, path, found)
}

// validateAlone refuses a second PersistentPodState of the same workload: pods would use only the first one.
func (v validator) validateAlone(ctx context.Context, state *v1beta1.PersistentPodState, path *field.Path, found *rules.Findings) {
	list := &v1beta1.PersistentPodStateList{}
	if err := v.reader.List(ctx, list, client.InNamespace(state.Namespace)); err != nil {
		found.AddErrors(field.InternalError(path, fmt.Errorf("listing PersistentPodStates: %w", err)))
		return
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name != state.Name && other.DeletionTimestamp == nil && rules.SameWorkload(other.Spec.TargetReference, state.Spec.TargetReference) {
			found.AddErrors(field.Invalid(path, state.Spec.TargetReference.Name, fmt.Sprintf("PersistentPodState %s has the same target", other.Name)))
		}
	}
}
