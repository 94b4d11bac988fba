// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/test/waiting"
)

// A probe that fails is a result. The status has no observedGeneration, so right behind a change it is that of the old spec.
func TestWhatKstatusSaysOfANodePodProbe(t *testing.T) {
	failing := v1alpha1.PodProbeStatus{UID: "a", ProbeStates: []v1alpha1.ContainerProbeState{{Name: "ready", State: v1alpha1.ProbeFailed}}}
	for name, tc := range map[string]struct {
		probes  []v1alpha1.PodProbe
		results []v1alpha1.PodProbeStatus
		want    status.Status
		message string
	}{
		"no pod is probed":             {nil, nil, waiting.Current, "0 of 0 pods have results of probes"},
		"a pod has no result yet":      {[]v1alpha1.PodProbe{{UID: "a"}, {UID: "b"}}, []v1alpha1.PodProbeStatus{failing}, waiting.InProgress, "1 of 2 pods have results of probes"},
		"a pod has a probe that fails": {[]v1alpha1.PodProbe{{UID: "a"}}, []v1alpha1.PodProbeStatus{failing}, waiting.Current, "1 of 1 pods have results of probes"},
	} {
		o := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Generation: 2}, Spec: v1alpha1.NodePodProbeSpec{PodProbes: tc.probes}}
		o.Status.PodProbeStatuses = tc.results
		kstatus.SetConditions(&o.Status, summarizeProbes(o, &o.Status), 0, time.Unix(1_800_000_000, 0))
		got, text := waiting.JudgeObject(t, v1alpha1.GroupVersion.WithKind("NodePodProbe"), o)
		if ready := o.Status.Conditions[len(o.Status.Conditions)-1]; got != tc.want || ready.Message != tc.message {
			t.Errorf("%s: kstatus says %s (%s), and Ready is %+v; want %s, %q", name, got, text, ready, tc.want, tc.message)
		}
	}
}
