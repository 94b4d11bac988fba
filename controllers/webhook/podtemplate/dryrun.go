// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Checker finds errors that Validate has no rules for. It reports problems that it is not sure about as
// warnings.
type Checker interface {
	CheckTemplate(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, claims []string, path *field.Path) (field.ErrorList, []string)
}

// DryRun creates a pod of the template as a dry run in the API server. That checks everything: newer fields, Pod
// Security, other webhooks. Only an invalid pod is an error. Other refusals may not last until the pod is created, such
// as an exhausted quota or a missing service account.
type DryRun struct {
	Pods client.Writer
}

var _ Checker = DryRun{}

// CheckTemplate implements Checker.
func (d DryRun) CheckTemplate(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, claims []string, path *field.Path) (field.ErrorList, []string) {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.GenerateName = namespace, "", "template-"
	for _, claim := range claims {
		if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claim }) {
			continue
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	err := d.Pods.Create(ctx, pod, client.DryRunAll)
	if err == nil {
		return nil, nil
	}
	var status apierrors.APIStatus
	if details := (*metav1.StatusDetails)(nil); apierrors.IsInvalid(err) && errors.As(err, &status) {
		if details = status.Status().Details; details != nil && len(details.Causes) > 0 {
			return invalidFields(details.Causes, path), nil
		}
	}
	return nil, []string{fmt.Sprintf("%s: the API server would not create a pod of this template now: %s", path, err)}
}

func invalidFields(causes []metav1.StatusCause, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, cause := range causes {
		// The message repeats the type and the value. Types that this release does not have are reported as
		// invalid values, since their names would panic.
		kind := field.ErrorType(cause.Type)
		if !slices.Contains([]field.ErrorType{
			field.ErrorTypeRequired, field.ErrorTypeForbidden, field.ErrorTypeNotSupported, field.ErrorTypeNotFound, field.ErrorTypeDuplicate,
		}, kind) {
			kind = field.ErrorTypeInvalid
		}
		errs = append(errs, &field.Error{
			Type: kind, Field: path.String() + "." + cause.Field, BadValue: field.OmitValueType{},
			Detail: strings.TrimPrefix(cause.Message, kind.String()+": "),
		})
	}
	return errs
}
