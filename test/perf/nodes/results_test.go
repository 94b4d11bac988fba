// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
)

func reported(states ...v1alpha1.ProbeState) *v1alpha1.NodePodProbe {
	o := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	s := v1alpha1.PodProbeStatus{UID: "u"}
	for i, state := range states {
		s.ProbeStates = append(s.ProbeStates, v1alpha1.ContainerProbeState{Name: []string{"all#p0", "all#p1"}[i], State: state})
	}
	o.Status.PodProbeStatuses = append(o.Status.PodProbeStatuses, s)
	return o
}

func conditions(all ...corev1.ConditionStatus) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	for i, is := range all {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(conditionPrefix + []string{"p0", "p1"}[i]), Status: is})
	}
	return p
}

func TestResults(t *testing.T) {
	r := newResults()
	r.seeNode(nil, reported(v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed))
	r.seePod(nil, conditions(corev1.ConditionTrue))
	if r.settled(2) {
		t.Error("settled without the second condition")
	}
	r.seePod(nil, conditions(corev1.ConditionTrue, corev1.ConditionFalse))
	if changed, took := r.changes(); !r.settled(2) || changed != 2 || len(took) != 2 {
		t.Errorf("settled %t, %d changed, %d took time", r.settled(2), changed, len(took))
	}
	r.reset()
	r.seePod(nil, conditions(corev1.ConditionFalse, corev1.ConditionFalse)) // this watch is ahead of the other
	r.seeNode(nil, reported(v1alpha1.ProbeFailed, v1alpha1.ProbeFailed))
	if changed, took := r.changes(); !r.settled(2) || changed != 1 || len(took) != 1 || took[0] != 0 {
		t.Errorf("settled %t, %d changed, took %v", r.settled(2), changed, took)
	}
	r.seeNode(nil, reported(v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed))
	if r.settled(2) {
		t.Error("settled while a condition is old")
	}
}
