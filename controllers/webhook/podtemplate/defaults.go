// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/regatta-sh/regatta/controllers/webhook/defaulting"
)

// Settings are the settings that may differ between installations.
type Settings struct {
	// HostNetworkHostPorts copies container ports to host ports of templates on the host's network, as API servers before
	// 1.28 did (gate DefaultHostNetworkHostPortsInPodTemplates). Newer API servers set them only in pods.
	HostNetworkHostPorts bool
	// NoPrivileged refuses privileged containers (--allow-privileged=false).
	NoPrivileged bool
}

// ApplyDefaults sets the defaults that the API server sets in a template. Defaults that the API server sets only in pods
// (requests from limits, enableServiceLinks) are left to it.
func (d Settings) ApplyDefaults(template *corev1.PodTemplateSpec) {
	spec := &template.Spec
	defaulting.SetIfEmpty(&spec.DNSPolicy, corev1.DNSClusterFirst)
	defaulting.SetIfEmpty(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	defaulting.SetIfEmpty(&spec.SchedulerName, corev1.DefaultSchedulerName)
	defaulting.SetIfNil(&spec.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	defaulting.SetIfNil(&spec.SecurityContext, corev1.PodSecurityContext{})
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			d.defaultContainer(&containers[i], spec.HostNetwork)
		}
	}
}

// ApplyToClaim sets the defaults that the API server sets in a claim template.
func (Settings) ApplyToClaim(claim *corev1.PersistentVolumeClaim) {
	defaulting.SetIfEmpty(&claim.Status.Phase, corev1.ClaimPending)
	roundUp(claim.Status.Capacity)
	roundUp(claim.Status.AllocatedResources)
	defaultClaimSpec(&claim.Spec)
}

func defaultClaimSpec(spec *corev1.PersistentVolumeClaimSpec) {
	defaulting.SetIfNil(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(spec.Resources.Limits)
	roundUp(spec.Resources.Requests)
}

func (d Settings) defaultContainer(container *corev1.Container, hostNetwork bool) {
	defaulting.SetIfEmpty(&container.ImagePullPolicy, pullPolicy(container.Image))
	defaulting.SetIfEmpty(&container.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	defaulting.SetIfEmpty(&container.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	roundUp(container.Resources.Limits)
	roundUp(container.Resources.Requests)
	for i := range container.Ports {
		port := &container.Ports[i]
		defaulting.SetIfEmpty(&port.Protocol, corev1.ProtocolTCP)
		if d.HostNetworkHostPorts && hostNetwork {
			defaulting.SetIfEmpty(&port.HostPort, port.ContainerPort)
		}
	}
	for i := range container.Env {
		if from := container.Env[i].ValueFrom; from != nil {
			defaultFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				defaulting.SetIfNil(&from.FileKeyRef.Optional, false)
			}
		}
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		if probe != nil {
			defaultProbe(probe)
		}
	}
	if lifecycle := container.Lifecycle; lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{lifecycle.PostStart, lifecycle.PreStop} {
			if handler != nil {
				defaultHTTPGet(handler.HTTPGet)
			}
		}
	}
}

func defaultProbe(probe *corev1.Probe) {
	defaulting.SetIfEmpty(&probe.TimeoutSeconds, 1)
	defaulting.SetIfEmpty(&probe.PeriodSeconds, 10)
	defaulting.SetIfEmpty(&probe.SuccessThreshold, 1)
	defaulting.SetIfEmpty(&probe.FailureThreshold, 3)
	defaultHTTPGet(probe.HTTPGet)
	if probe.GRPC != nil {
		defaulting.SetIfNil(&probe.GRPC.Service, "")
	}
}

func defaultHTTPGet(action *corev1.HTTPGetAction) {
	if action != nil {
		defaulting.SetIfEmpty(&action.Path, "/")
		defaulting.SetIfEmpty(&action.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		defaulting.SetIfEmpty(&ref.APIVersion, "v1")
	}
}

// pullPolicy is Always if the image means "the latest", by its tag or because it has none. A digest is never the latest.
// A malformed image gets the policy that its tag suggests, while the API server sets IfNotPresent; no node runs it
// either way.
func pullPolicy(image string) corev1.PullPolicy {
	name, _, pinned := strings.Cut(image, "@")
	_, tag, tagged := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if name != "" && (tagged && tag == "latest" || !tagged && !pinned) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// roundUp rounds quantities up to thousandths, the smallest unit that the API server stores.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		if quantity.RoundUp(resource.Milli) {
			continue
		}
		list[name] = quantity
	}
}
