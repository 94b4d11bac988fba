package rules

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
)

// JobName wants a name that pods can be labelled with. It is asked of new objects only, not by CEL, which would keep the
// status of an old one from being written.
func (f *Findings) JobName(object metav1.Object) {
	path, name := field.NewPath("metadata", "name"), object.GetName()
	if !regexp.MustCompile(`^[a-zA-Z0-9\-]+$`).MatchString(name) {
		f.Add(field.Invalid(path, name, "must consist of letters, digits and dashes"))
	}
	if len(name) > validation.DNS1123LabelMaxLength {
		f.Add(field.TooLong(path, name, validation.DNS1123LabelMaxLength))
	}
}

// PodsOfJob wants a template of pods that end. The user says how, since the default is that they never do.
func (f *Findings) PodsOfJob(template *corev1.PodTemplateSpec, defaults podtemplate.Defaults, path *field.Path) {
	policy := template.Spec.RestartPolicy
	template = template.DeepCopy()
	defaults.Apply(template)
	at := path.Child("spec", "restartPolicy")
	switch policy {
	case "":
		f.Add(field.Required(at, "must be Never or OnFailure"))
	case corev1.RestartPolicyAlways:
		f.Add(field.NotSupported(at, policy, []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}))
	}
	f.Add(podtemplate.Validate(template, nil, path)...)
}
