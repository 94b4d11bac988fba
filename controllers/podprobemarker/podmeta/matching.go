// SPDX-License-Identifier: Apache-2.0

// Package podmeta determines which pods a PodProbeMarker probes, and writes the conditions, labels and
// annotations of a pod that the results of the probes call for.
package podmeta

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/annotation"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

// IsProbeable reports whether a pod can be probed (PPM-01): it is active, initialized and on a node.
func IsProbeable(pod *corev1.Pod) bool {
	c := inplace.FindCondition(pod, corev1.PodInitialized)
	return availability.IsActive(pod) && pod.Spec.NodeName != "" && c != nil && c.Status == corev1.ConditionTrue
}

// Marker is a PodProbeMarker with its selector.
type Marker struct {
	*v1alpha1.PodProbeMarker
	selector labels.Selector
}

// Read reads the selector of a marker.
func Read(m *v1alpha1.PodProbeMarker) (Marker, error) {
	selector, err := metav1.LabelSelectorAsSelector(m.Spec.Selector)
	if err != nil {
		return Marker{}, fmt.Errorf("reading spec.selector of PodProbeMarker %s: %w", m.Name, err)
	}
	return Marker{m, selector}, nil
}

// List returns the markers of a namespace that are not terminating, sorted by name. A marker with an
// invalid selector probes nothing; its controller reports that.
func List(ctx context.Context, c client.Reader, namespace string) ([]Marker, error) {
	list := &v1alpha1.PodProbeMarkerList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the PodProbeMarkers of namespace %s: %w", namespace, err)
	}
	var out []Marker
	for i := range list.Items {
		if m, err := Read(&list.Items[i]); err == nil && m.DeletionTimestamp == nil {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Marker) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// SelectsPod reports whether a marker selects a pod. A serverless pod has had a list of its markers
// since it was created.
func (m Marker) SelectsPod(pod *corev1.Pod, serverless bool) bool {
	if m.Namespace != pod.Namespace {
		return false
	}
	if serverless {
		if text, ok := pod.Annotations[kruise.PodProbeMarkerListKey]; ok {
			if names, err := annotation.Decode[[]string](kruise.PodProbeMarkerListKey, text); err == nil {
				return slices.Contains(names, m.Name)
			}
			return slices.Contains(strings.Split(text, ","), m.Name)
		}
	}
	return m.selector.Matches(labels.Set(pod.Labels))
}

// Name is the name of a marker's probe in a NodePodProbe.
func Name(marker, probe string) string { return marker + "#" + probe }
