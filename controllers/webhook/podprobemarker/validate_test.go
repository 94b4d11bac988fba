// SPDX-License-Identifier: Apache-2.0

package podprobemarker

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func marker(container, conditionType string) *v1alpha1.PodProbeMarker {
	probe := v1alpha1.PodContainerProbe{Name: "a", ContainerName: container, PodConditionType: conditionType}
	probe.Probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}
	return &v1alpha1.PodProbeMarker{Spec: v1alpha1.PodProbeMarkerSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Probes: []v1alpha1.PodContainerProbe{probe},
	}}
}

func TestAConditionThatOpenKruiseLetPassStays(t *testing.T) {
	for _, tc := range []struct {
		name        string
		marker, old *v1alpha1.PodProbeMarker
		want        string
	}{
		{"it is not created", marker("main", "Ready"), nil, "must not be the type"},
		{"something else may be changed beside it", marker("other", "Ready"), marker("main", "Ready"), ""},
		{"it is not changed into another one", marker("main", "Initialized"), marker("main", "Ready"), "must not be the type"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := &rules.Findings{}
			New().Validate(t.Context(), tc.marker, tc.old, found)
			if len(found.Errs) > 1 || (len(found.Errs) == 1) != (tc.want != "") || len(found.Errs) == 1 && !strings.Contains(found.Errs[0].Error(), tc.want) {
				t.Errorf("got %v", found.Errs)
			}
		})
	}
}

func TestWhatIsIgnoredIsWarnedOf(t *testing.T) {
	m, found := marker("main", "x"), &rules.Findings{}
	m.Spec.Probes[0].Probe.GRPC = &corev1.GRPCAction{}
	m.Spec.Probes[0].Probe.TerminationGracePeriodSeconds = ptr.To[int64](1)
	New().Validate(t.Context(), m, nil, found)
	if len(found.Errs) > 0 || len(found.Warnings) != 2 || !strings.HasPrefix(found.Warnings[0], "spec.probes[0].probe.grpc: ") {
		t.Errorf("got %v, %v", found.Errs, found.Warnings)
	}
}
