// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SubdomainName wants a name that is a DNS subdomain, which more than the API server asks of no custom resource.
func (f *Findings) SubdomainName(object metav1.Object) {
	for _, message := range apivalidation.NameIsDNSSubdomain(object.GetName(), false) {
		f.AddErrors(field.Invalid(field.NewPath("metadata", "name"), object.GetName(), message))
	}
}

// LabelName wants a name that others can be labelled with. It is asked of new objects only, not by CEL, which would keep the
// status of an old one from being written.
func (f *Findings) LabelName(object metav1.Object) {
	path, name := field.NewPath("metadata", "name"), object.GetName()
	if !regexp.MustCompile(`^[a-zA-Z0-9\-]+$`).MatchString(name) {
		f.AddErrors(field.Invalid(path, name, `must match ^[a-zA-Z0-9\-]+$: a name must consist of letters, digits and dashes`))
	}
	if len(name) > validation.DNS1123LabelMaxLength {
		f.AddErrors(field.TooLong(path, name, validation.DNS1123LabelMaxLength))
	}
}

// RunsForever is for what replaces pods that end, and so has no use for pods that are meant to.
func (f *Findings) RunsForever(spec *corev1.PodSpec, path *field.Path, kind string) {
	if slices.Contains([]corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}, spec.RestartPolicy) {
		f.AddErrors(field.NotSupported(path.Child("restartPolicy"), spec.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if spec.ActiveDeadlineSeconds != nil {
		f.AddErrors(field.Forbidden(path.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
}

// OnlyImages says what changes besides images of containers, which is all that InPlaceOnly can do; nothing if that is all.
// Defaults should be filled in, so that a field which they fill in is no change.
func OnlyImages(old, template *corev1.PodSpec) (operation, path string, err error) {
	before, errBefore := json.Marshal(old)
	after, errAfter := json.Marshal(template)
	if errBefore != nil || errAfter != nil {
		return "", "", fmt.Errorf("encoding pod templates: %w", errors.Join(errBefore, errAfter))
	}
	patch, err := jsonpatch.CreatePatch(before, after)
	if err != nil {
		return "", "", fmt.Errorf("comparing pod templates: %w", err)
	}
	image := regexp.MustCompile(`^/containers/[0-9]+/image$`)
	for _, o := range patch {
		if o.Operation != "replace" || !image.MatchString(o.Path) {
			return o.Operation, o.Path, nil
		}
	}
	return "", "", nil
}
