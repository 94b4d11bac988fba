// SPDX-License-Identifier: Apache-2.0

package podprobemarker

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func validateProbe(probe *v1alpha1.ContainerProbeSpec, path *field.Path, found *rules.Findings) {
	if get := probe.HTTPGet; get != nil {
		rules.OneOf(found, get.Scheme, path.Child("httpGet", "scheme"), corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
		validatePort(get.Port, path.Child("httpGet", "port"), found)
	}
	if tcp := probe.TCPSocket; tcp != nil {
		validatePort(tcp.Port, path.Child("tcpSocket", "port"), found)
	}
	if probe.GRPC != nil {
		found.AddWarning(path.Child("grpc"), "A PodProbeMarker ignores this field; use exec, httpGet or tcpSocket.")
	}
	if probe.TerminationGracePeriodSeconds != nil {
		found.AddWarning(path.Child("terminationGracePeriodSeconds"), "A PodProbeMarker ignores this field, as it ends no container.")
	}
}

// validatePort accepts a number, or the name of a port of the container.
func validatePort(port intstr.IntOrString, path *field.Path, found *rules.Findings) {
	messages, value := validation.IsValidPortName(port.StrVal), any(port.StrVal)
	if port.Type == intstr.Int {
		messages, value = validation.IsValidPortNum(int(port.IntVal)), port.IntVal
	}
	for _, message := range messages {
		found.AddErrors(field.Invalid(path, value, message))
	}
}
