// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"
)

// Validate finds errors in a template whose defaults are set. Containers may mount the claims too: each pod gets a
// volume of each claim, with the claim's name.
func Validate(template *corev1.PodTemplateSpec, claims []string, path *field.Path) field.ErrorList {
	meta, spec := path.Child("metadata"), path.Child("spec")
	errs := metav1validation.ValidateLabels(template.Labels, meta.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, meta.Child("annotations"))...)
	errs = append(errs, validateVolumes(template.Spec.Volumes, spec.Child("volumes"))...)
	errs = append(errs, validateContainers(&template.Spec, volumesOf(template.Spec.Volumes, claims), spec)...)
	errs = append(errs, validatePod(&template.Spec, spec)...)
	return append(errs, validateScheduling(&template.Spec, spec)...)
}

// ValidateTemplate calls Validate, and adds the rules of these settings.
func (d Settings) ValidateTemplate(template *corev1.PodTemplateSpec, claims []string, path *field.Path) field.ErrorList {
	errs := Validate(template, claims, path)
	if !d.NoPrivileged {
		return errs
	}
	spec := path.Child("spec")
	for _, all := range []struct {
		containers []corev1.Container
		at         *field.Path
	}{{template.Spec.InitContainers, spec.Child("initContainers")}, {template.Spec.Containers, spec.Child("containers")}} {
		for i := range all.containers {
			if c := all.containers[i].SecurityContext; c != nil && ptr.Deref(c.Privileged, false) {
				errs = append(errs, field.Forbidden(all.at.Index(i).Child("securityContext", "privileged"), "disallowed by cluster policy"))
			}
		}
	}
	return errs
}

// ClaimNames are the names of claim templates, for Validate.
func ClaimNames(claims []corev1.PersistentVolumeClaim) []string {
	names := make([]string, 0, len(claims))
	for i := range claims {
		names = append(names, claims[i].Name)
	}
	return names
}

// validatePod checks the fields of the pod as a whole.
func validatePod(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := oneOf(spec.RestartPolicy, path.Child("restartPolicy"), corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	errs = append(errs, oneOf(spec.DNSPolicy, path.Child("dnsPolicy"),
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	if spec.DNSPolicy == corev1.DNSNone && (spec.DNSConfig == nil || len(spec.DNSConfig.Nameservers) == 0) {
		errs = append(errs, field.Required(path.Child("dnsConfig"), "a nameserver is needed when `dnsPolicy` is None"))
	}
	for _, name := range []struct {
		value, child string
		check        func(string) []string
	}{
		{spec.ServiceAccountName, "serviceAccountName", validation.IsDNS1123Subdomain},
		{spec.NodeName, "nodeName", validation.IsDNS1123Subdomain},
		{spec.PriorityClassName, "priorityClassName", validation.IsDNS1123Subdomain},
		{spec.Hostname, "hostname", validation.IsDNS1123Label},
		{spec.Subdomain, "subdomain", validation.IsDNS1123Label},
	} {
		if name.value != "" {
			errs = append(errs, invalidErrors(path.Child(name.child), name.value, name.check(name.value))...)
		}
	}
	if spec.RuntimeClassName != nil {
		errs = append(errs, invalidErrors(path.Child("runtimeClassName"), *spec.RuntimeClassName, validation.IsDNS1123Subdomain(*spec.RuntimeClassName))...)
	}
	for i, alias := range spec.HostAliases {
		at := path.Child("hostAliases").Index(i)
		if netutils.ParseIPSloppy(alias.IP) == nil {
			errs = append(errs, field.Invalid(at.Child("ip"), alias.IP, "must be a valid IP address"))
		}
		for j, hostname := range alias.Hostnames {
			errs = append(errs, invalidErrors(at.Child("hostnames").Index(j), hostname, validation.IsDNS1123Subdomain(hostname))...)
		}
	}
	for i, gate := range spec.ReadinessGates {
		errs = append(errs, invalidErrors(path.Child("readinessGates").Index(i).Child("conditionType"), string(gate.ConditionType),
			validation.IsQualifiedName(string(gate.ConditionType)))...)
	}
	if len(spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return errs
}

// oneOf returns an error unless the value is one of the supported ones.
func oneOf[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	switch {
	case slices.Contains(supported, value):
		return nil
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	}
	return field.ErrorList{field.NotSupported(path, value, slices.Sorted(slices.Values(supported)))}
}

func invalidErrors(path *field.Path, value string, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

func notNegative[T ~int32 | ~int64](value T, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(int64(value), path)
}
