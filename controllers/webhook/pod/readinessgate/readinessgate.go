// SPDX-License-Identifier: Apache-2.0

// Package readinessgate gives pods the readiness gate KruisePodReady (PA-01).
package readinessgate

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

const (
	owned = "object.metadata.?ownerReferences.orValue([]).exists(o, o.apiVersion.startsWith('apps.kruise.io/'))"
	// The controller of CloneSets gives its pods the gate when it creates them.
	ungated = "!object.spec.?readinessGates.orValue([]).exists(g, g.conditionType == 'KruisePodReady')"
)

// New makes the step, for all pods (gate KruisePodReadinessGate) or for those of a controller of apps.kruise.io.
func New(all bool) pod.MutatingStep {
	step := pod.MutatingStep{
		Place: pod.ReadinessGate, Name: "adding the readiness gate", Match: match.Created{Name: "readiness"},
		Mutate: func(_ context.Context, c *pod.Creation) (bool, error) {
			if !all && !isKruiseOwned(c.Pod) {
				return false, nil
			}
			return inplace.AddGate(c.Pod, kruise.KruisePodReady), nil
		},
	}
	if !all {
		step.Match.Conditions = []admissionv1.MatchCondition{{Name: "owned-by-a-workload-of-ours", Expression: owned}, {Name: "without-the-readiness-gate", Expression: ungated}}
	}
	return step
}

func isKruiseOwned(p *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == kruise.GroupName
}
