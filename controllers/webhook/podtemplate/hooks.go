// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateHooks checks what the kubelet runs in a container: probes, postStart and preStop.
func validateHooks(container *corev1.Container, path *field.Path) field.ErrorList {
	errs := validateProbe(container.LivenessProbe, true, path.Child("livenessProbe"))
	errs = append(errs, validateProbe(container.ReadinessProbe, false, path.Child("readinessProbe"))...)
	errs = append(errs, validateProbe(container.StartupProbe, true, path.Child("startupProbe"))...)
	if container.ReadinessProbe != nil && container.ReadinessProbe.TerminationGracePeriodSeconds != nil {
		errs = append(errs, field.Invalid(path.Child("readinessProbe", "terminationGracePeriodSeconds"),
			*container.ReadinessProbe.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	if lifecycle := container.Lifecycle; lifecycle != nil {
		errs = append(errs, validateLifecycleHandler(lifecycle.PostStart, path.Child("lifecycle", "postStart"))...)
		errs = append(errs, validateLifecycleHandler(lifecycle.PreStop, path.Child("lifecycle", "preStop"))...)
	}
	return errs
}

func forbidHooks(container *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, hook := range []struct {
		child string
		set   bool
	}{
		{"lifecycle", container.Lifecycle != nil}, {"livenessProbe", container.LivenessProbe != nil},
		{"readinessProbe", container.ReadinessProbe != nil}, {"startupProbe", container.StartupProbe != nil},
	} {
		if hook.set {
			errs = append(errs, field.Forbidden(path.Child(hook.child), "may not be set for init containers without restartPolicy=Always"))
		}
	}
	return errs
}

// validateProbe checks a probe. A probe that restarts the container must have a success threshold of 1.
func validateProbe(probe *corev1.Probe, restarts bool, path *field.Path) field.ErrorList {
	if probe == nil {
		return nil
	}
	errs := validateHandler(handler{probe.Exec, probe.HTTPGet, probe.TCPSocket, probe.GRPC, nil}, path)
	errs = append(errs, notNegative(probe.InitialDelaySeconds, path.Child("initialDelaySeconds"))...)
	errs = append(errs, notNegative(probe.TimeoutSeconds, path.Child("timeoutSeconds"))...)
	errs = append(errs, notNegative(probe.PeriodSeconds, path.Child("periodSeconds"))...)
	errs = append(errs, notNegative(probe.SuccessThreshold, path.Child("successThreshold"))...)
	errs = append(errs, notNegative(probe.FailureThreshold, path.Child("failureThreshold"))...)
	if restarts && probe.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), probe.SuccessThreshold, "must be 1"))
	}
	return errs
}

func validateLifecycleHandler(hook *corev1.LifecycleHandler, path *field.Path) field.ErrorList {
	if hook == nil {
		return nil
	}
	return validateHandler(handler{hook.Exec, hook.HTTPGet, hook.TCPSocket, nil, hook.Sleep}, path)
}

// handler has the fields that probes and lifecycle hooks have in common.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func validateHandler(h handler, path *field.Path) field.ErrorList {
	switch countSet(h.exec != nil, h.http != nil, h.tcp != nil, h.grpc != nil, h.sleep != nil) {
	case 0:
		return field.ErrorList{field.Required(path, "must specify a handler type")}
	case 1:
	default:
		return field.ErrorList{field.Forbidden(path, "may not specify more than 1 handler type")}
	}
	switch {
	case h.exec != nil && len(h.exec.Command) == 0:
		return field.ErrorList{field.Required(path.Child("exec", "command"), "")}
	case h.http != nil:
		errs := validatePort(h.http.Port, path.Child("httpGet", "port"))
		if h.http.Path == "" {
			errs = append(errs, field.Required(path.Child("httpGet", "path"), ""))
		}
		return append(errs, oneOf(h.http.Scheme, path.Child("httpGet", "scheme"), corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	case h.tcp != nil:
		return validatePort(h.tcp.Port, path.Child("tcpSocket", "port"))
	case h.grpc != nil:
		return portNumber(h.grpc.Port, path.Child("grpc", "port"))
	}
	return nil
}

// validatePort accepts a number or the name of a port.
func validatePort(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return portNumber(port.IntVal, path)
	}
	return invalidErrors(path, port.StrVal, validation.IsValidPortName(port.StrVal))
}
