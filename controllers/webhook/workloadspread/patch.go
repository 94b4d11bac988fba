// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
)

// Workloads are read for their templates, which patches are tried on.
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get

// validatePatches tries new patches on the pod template of the workload, if it exists.
func (v validator) validatePatches(ctx context.Context, spread, old *v1beta1.WorkloadSpread, found *rules.Findings) {
	var pod *corev1.PodTemplateSpec
	for i := range spread.Spec.Subsets {
		part := &spread.Spec.Subsets[i]
		path := field.NewPath("spec", "subsets").Index(i).Child("patch")
		if was := subsetOf(old, part.Name); len(part.Patch.Raw) == 0 || was != nil && equality.Semantic.DeepEqual(was.Patch, part.Patch) {
			continue
		}
		if pod == nil {
			var ok bool
			if pod, ok = v.workloadTemplate(ctx, spread, path, found); !ok {
				return
			}
		}
		v.validatePatch(pod, part.Patch.Raw, path, found)
	}
}

func (v validator) validatePatch(pod *corev1.PodTemplateSpec, patch []byte, path *field.Path, found *rules.Findings) {
	patched, err := subset.ApplyPatch(pod, patch)
	if err != nil {
		found.AddErrors(field.Invalid(path, string(patch), "must be a strategic merge patch of a pod: "+err.Error()))
		return
	}
	if len(pod.Spec.Containers) == 0 { // the workload does not exist yet
		return
	}
	v.templates.ApplyDefaults(patched)
	if errs := v.templates.ValidateTemplate(patched, nil, nil); len(errs) > 0 {
		found.AddErrors(field.Invalid(path, string(patch), "makes a pod that is not valid: "+errs.ToAggregate().Error()))
	}
}

// workloadTemplate returns the pod template of the workload; an empty one if there is none, or if it cannot be decoded. Its claims
// become volumes with their names. It returns false if the workload could not be read.
//
// The workload is read as an unstructured object, which clients of a manager do not cache.
func (v validator) workloadTemplate(ctx context.Context, spread *v1beta1.WorkloadSpread, path *field.Path, found *rules.Findings) (*corev1.PodTemplateSpec, bool) {
	target, object := spread.Spec.TargetReference, &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(target.APIVersion, target.Kind))
	err := v.reader.Get(ctx, types.NamespacedName{Namespace: spread.Namespace, Name: target.Name}, object)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return &corev1.PodTemplateSpec{}, true
	case apierrors.IsForbidden(err): // a kind of the white list, which the manager may not read
		found.AddWarning(path, "it was not tried on the workload, which the manager may not read.")
		return &corev1.PodTemplateSpec{}, true
	case err != nil:
		found.AddErrors(field.InternalError(path, fmt.Errorf("finding %s %s: %w", target.Kind, target.Name, err)))
		return nil, false
	}
	workload := struct {
		Spec struct {
			Template             corev1.PodTemplateSpec
			VolumeClaimTemplates []corev1.PersistentVolumeClaim
		}
	}{}
	raw, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &workload)
	}
	if err != nil { // the template has another form: there is nothing to try a patch on
		return &corev1.PodTemplateSpec{}, true
	}
	pod := &workload.Spec.Template
	for _, claim := range podtemplate.ClaimNames(workload.Spec.VolumeClaimTemplates) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return pod, true
}
