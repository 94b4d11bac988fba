// SPDX-License-Identifier: Apache-2.0

package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
)

// PodsOfJob requires a template of pods that end. The user must set the restart policy, since with the default
// pods never end.
func (f *Findings) PodsOfJob(template *corev1.PodTemplateSpec, settings podtemplate.Settings, path *field.Path) {
	policy := template.Spec.RestartPolicy
	template = template.DeepCopy()
	settings.ApplyDefaults(template)
	at := path.Child("spec", "restartPolicy")
	switch policy {
	case "":
		f.AddErrors(field.Required(at, "must be Never or OnFailure"))
	case corev1.RestartPolicyAlways:
		f.AddErrors(field.NotSupported(at, policy, []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}))
	}
	f.AddErrors(settings.ValidateTemplate(template, nil, path)...)
}
