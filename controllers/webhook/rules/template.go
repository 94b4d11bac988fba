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

// SubdomainName requires a name that is a DNS subdomain. The API server requires no more of the name of any
// custom resource.
func (f *Findings) SubdomainName(object metav1.Object) {
	for _, message := range apivalidation.NameIsDNSSubdomain(object.GetName(), false) {
		f.AddErrors(field.Invalid(field.NewPath("metadata", "name"), object.GetName(), message))
	}
}

// LabelName requires a name that can be the value of a label. It applies only to new objects. A CEL rule would prevent the
// status of an old object from being written.
func (f *Findings) LabelName(object metav1.Object) {
	path, name := field.NewPath("metadata", "name"), object.GetName()
	if !regexp.MustCompile(`^[a-zA-Z0-9\-]+$`).MatchString(name) {
		f.AddErrors(field.Invalid(path, name, `must match ^[a-zA-Z0-9\-]+$: a name must consist of letters, digits and dashes`))
	}
	if len(name) > validation.DNS1123LabelMaxLength {
		f.AddErrors(field.TooLong(path, name, validation.DNS1123LabelMaxLength))
	}
}

// RunsForever requires the restart policy Always and no deadline, for workloads that replace pods that end.
func (f *Findings) RunsForever(spec *corev1.PodSpec, path *field.Path, kind string) {
	if slices.Contains([]corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}, spec.RestartPolicy) {
		f.AddErrors(field.NotSupported(path.Child("restartPolicy"), spec.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if spec.ActiveDeadlineSeconds != nil {
		f.AddErrors(field.Forbidden(path.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
}

// OnlyImages returns the first change besides images of containers, which are the only change that InPlaceOnly allows;
// empty if there is none. Defaults should be set in both specs, so that a default is no change.
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
