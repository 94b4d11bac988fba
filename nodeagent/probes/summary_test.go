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

// A pod that is added mostly has a result within a pause, so that both are one write. A result does not wait for that.
func TestConditionsAloneWaitForAResult(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	a := &Agent{now: func() time.Time { return now }}
	was, summed, known := &v1alpha1.NodePodProbe{}, &v1alpha1.NodePodProbe{}, &v1alpha1.NodePodProbe{}
	kstatus.SetConditions(&summed.Status, kstatus.NewReconciling("Progressing", "0 of 1"), 0, now)
	known.Status.PodProbeStatuses = []v1alpha1.PodProbeStatus{{UID: "a"}}
	for _, step := range []struct {
		name    string
		passes  time.Duration
		changed *v1alpha1.NodePodProbe
		written bool // just before
		want    time.Duration
	}{
		{name: "a pod is added", changed: summed, want: pause},
		{name: "it has no result yet", passes: pause / 3, changed: summed, want: pause - pause/3},
		{name: "it has one", changed: known, want: 0},
		{name: "it has none in time", passes: pause - pause/3, changed: summed, want: 0},
		{name: "it has one right behind a write", changed: known, written: true, want: pause},
	} {
		now = now.Add(step.passes)
		if step.written {
			a.written = now
		}
		if got := max(a.untilWrite(was, step.changed), 0); got != step.want {
			t.Errorf("%s: the write waits %s, want %s", step.name, got, step.want)
		}
	}
}
