// SPDX-License-Identifier: Apache-2.0

// Package livenessprobe restarts containers whose liveness probe the node agent runs in
// place of the kubelet (ELP-01). A failure is a ContainerRecreateRequest, so that budgets and rules
// may hold the restart: a wrong liveness probe does not restart all pods of a service at once.
package livenessprobe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// prefix begins the names of liveness probes on nodes, before the name of the container. No PodProbeMarker has
// such a name.
const prefix = "LivenessProbe#"

// Saved is the liveness probe of a container, as stored in the annotation of its pod.
type Saved struct {
	Name          string        `json:"name"`
	LivenessProbe *corev1.Probe `json:"livenessProbe"`
}

// Read reads the probes that the webhook moved from the containers of a pod into its annotation.
func Read(pod *corev1.Pod) ([]Saved, error) {
	text := pod.Annotations[kruise.ContainerProbeContextKey]
	if text == "" {
		return nil, nil
	}
	all, err := annotation.Decode[[]Saved](kruise.ContainerProbeContextKey, text)
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return slices.DeleteFunc(all, func(s Saved) bool { return s.LivenessProbe == nil || CheckSupported(s.LivenessProbe) != nil }), nil
}

// Write saves probes in the annotation of a pod.
func Write(pod *corev1.Pod, all []Saved) error {
	raw, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("writing annotation %s: %w", kruise.ContainerProbeContextKey, err)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[kruise.ContainerProbeContextKey] = string(raw)
	return nil
}

// UnsupportedError says why the node agent cannot run a probe.
type UnsupportedError string

// Error implements error.
func (e UnsupportedError) Error() string { return string(e) }

// CheckSupported says why the node agent cannot run a probe, nil if it can.
func CheckSupported(p *corev1.Probe) error {
	switch {
	case p.Exec != nil && len(p.Exec.Command) > 0:
		return nil
	case p.HTTPGet != nil && p.HTTPGet.Host == "":
		return nil
	case p.TCPSocket != nil && p.TCPSocket.Host == "":
		return nil
	}
	return UnsupportedError("the node agent runs a command, or asks the pod itself by HTTP or TCP")
}

// ProbeName is the name of the probe of a container in the NodePodProbe.
func ProbeName(container string) string { return prefix + container }

// ContainerName is the container of a probe in a NodePodProbe, if it is a liveness probe.
func ContainerName(probe string) (container string, ok bool) { return strings.CutPrefix(probe, prefix) }

// IsContainerStarted reports whether the liveness probe of a container may run: its startup probe has
// succeeded, if it has one.
func IsContainerStarted(pod *corev1.Pod, container string) bool {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == container {
			return s.Started != nil && *s.Started
		}
	}
	return false
}
