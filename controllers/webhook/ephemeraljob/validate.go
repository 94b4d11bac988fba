// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func validateContainers(containers []corev1.EphemeralContainer, path *field.Path, found *rules.Findings) {
	if len(containers) == 0 {
		found.AddErrors(field.Required(path, "without a container there is nothing to run"))
	}
	names := make([]string, len(containers))
	for i := range containers {
		names[i] = containers[i].Name
	}
	for i, again := range rules.FindDuplicates(names) {
		at := path.Index(i)
		if again {
			found.AddErrors(field.Duplicate(at.Child("name"), names[i]))
		}
		validateContainer(&containers[i].EphemeralContainerCommon, at, found)
	}
}

func validateContainer(container *corev1.EphemeralContainerCommon, path *field.Path, found *rules.Findings) {
	for _, message := range validation.IsDNS1123Label(container.Name) {
		found.AddErrors(field.Invalid(path.Child("name"), container.Name, message))
	}
	switch {
	case container.Image == "":
		found.AddErrors(field.Required(path.Child("image"), ""))
	case strings.ContainsFunc(container.Image, unicode.IsSpace):
		found.AddErrors(field.Invalid(path.Child("image"), container.Image, "must not contain spaces"))
	}
	requireOneOf(found, container.TerminationMessagePolicy, path.Child("terminationMessagePolicy"), corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	requireOneOf(found, container.ImagePullPolicy, path.Child("imagePullPolicy"), corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	for _, other := range []struct {
		child string
		set   bool
	}{
		{"ports", len(container.Ports) > 0},
		{"livenessProbe", container.LivenessProbe != nil},
		{"readinessProbe", container.ReadinessProbe != nil},
		{"startupProbe", container.StartupProbe != nil},
		{"lifecycle", container.Lifecycle != nil},
		{"resources", len(container.Resources.Limits)+len(container.Resources.Requests)+len(container.Resources.Claims) > 0},
	} {
		if other.set {
			found.AddErrors(field.Forbidden(path.Child(other.child), "cannot be set for an Ephemeral Container"))
		}
	}
	for i, mount := range container.VolumeMounts {
		at := path.Child("volumeMounts").Index(i)
		if mount.SubPath != "" {
			found.AddErrors(field.Forbidden(at.Child("subPath"), "cannot be set for an Ephemeral Container"))
		}
		if mount.SubPathExpr != "" {
			found.AddErrors(field.Forbidden(at.Child("subPathExpr"), "cannot be set for an Ephemeral Container"))
		}
	}
}

// requireOneOf requires one of the supported values. There is no default: the containers are added to running pods through a
// subresource, and its defaults are not set before the job is validated.
func requireOneOf[T ~string](found *rules.Findings, value T, path *field.Path, supported ...T) {
	if value == "" {
		found.AddErrors(field.Required(path, "must be one of "+joinValues(supported)))
		return
	}
	rules.OneOf(found, value, path, supported...)
}

func joinValues[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return strings.Join(texts, ", ")
}
