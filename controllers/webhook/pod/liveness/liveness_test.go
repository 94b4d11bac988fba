// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/livenessprobe"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/test/rules"
)

func TestWhichProbesAreTakenOut(t *testing.T) {
	e := rules.Engine(t, "")
	exec := func() *corev1.Probe {
		p := &corev1.Probe{PeriodSeconds: 5}
		p.Exec = &corev1.ExecAction{Command: []string{"true"}}
		return p
	}
	grpc := &corev1.Probe{}
	grpc.GRPC = &corev1.GRPCAction{Port: 1}
	elsewhere := &corev1.Probe{}
	elsewhere.HTTPGet = &corev1.HTTPGetAction{Host: "example.com"}
	for name, tc := range map[string]struct {
		value string
		owned bool
		saved string
	}{
		"one of a workload that asks": {"true", true, `[{"name":"web","livenessProbe":{"exec":{"command":["true"]},"periodSeconds":5}}]`},
		"one that says no":            {"false", true, ""},
		"one of no workload":          {"true", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Annotations: map[string]string{kruise.UsingEnhancedLivenessKey: tc.value}}}
			if tc.owned {
				yes := true
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: &yes}}
			}
			p.Spec.Containers = []corev1.Container{
				{Name: "web", LivenessProbe: exec()}, {Name: "rpc", LivenessProbe: grpc}, {Name: "far", LivenessProbe: elsewhere}, {Name: "log"},
			}
			did, err := New(e).Mutate(t.Context(), &pod.Creation{Pod: p, Namespace: "shop"})
			if err != nil || did != (tc.saved != "") || p.Annotations[kruise.ContainerProbeContextKey] != tc.saved || (p.Spec.Containers[0].LivenessProbe == nil) != did {
				t.Errorf("got %t, %v, %v", did, err, p.Annotations)
			}
			if p.Spec.Containers[1].LivenessProbe == nil || p.Spec.Containers[2].LivenessProbe == nil {
				t.Error("a probe was taken out that the agent cannot run")
			}
			if saved, err := livenessprobe.Read(p); err != nil || len(saved) > 0 != did {
				t.Errorf("read back were %v, %v", saved, err)
			}
		})
	}
}
