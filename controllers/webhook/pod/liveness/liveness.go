// SPDX-License-Identifier: Apache-2.0

// Package liveness moves liveness probes of new pods into an annotation, so that the node agent runs
// them (ELP-01). Policies decide for which pods.
package liveness

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/livenessprobe"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/facts"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/engine"
	points "github.com/regatta-sh/regatta/engine/decision/injection"
)

const asks = "'" + kruise.UsingEnhancedLivenessKey + "' in object.metadata.?annotations.orValue({})"

// New makes the step.
func New(e *engine.Engine) pod.MutatingStep {
	return pod.MutatingStep{
		Place: pod.LivenessProbe, Name: "taking liveness probes out of the pod",
		Gates:  []featuregate.Feature{features.EnhancedLivenessProbe},
		Match:  match.Created{Name: "liveness", Conditions: []admissionv1.MatchCondition{{Name: "asks-for-enhanced-liveness", Expression: asks}}},
		Mutate: func(ctx context.Context, c *pod.Creation) (bool, error) { return mutatePod(ctx, e, c) },
	}
}

func mutatePod(ctx context.Context, e *engine.Engine, c *pod.Creation) (bool, error) {
	value, there := c.Pod.Annotations[kruise.UsingEnhancedLivenessKey]
	if !there {
		return false, nil
	}
	in := points.LivenessInput{Pod: facts.PodInput(c, nil), Asked: strings.EqualFold(value, "true"), Containers: []points.LivenessContainer{}}
	for i := range c.Pod.Spec.Containers {
		if own := &c.Pod.Spec.Containers[i]; own.LivenessProbe != nil {
			in.Containers = append(in.Containers, points.LivenessContainer{
				Name: own.Name, Handler: handlerName(own.LivenessProbe), Supported: livenessprobe.CheckSupported(own.LivenessProbe) == nil,
				PeriodSeconds: int(own.LivenessProbe.PeriodSeconds), FailureThreshold: int(own.LivenessProbe.FailureThreshold),
			})
		}
	}
	if len(in.Containers) == 0 {
		return false, nil
	}
	out, _ := engine.Decide(ctx, e, points.LivenessPoint(), facts.PodSubject(c), in)
	take := out.PermittedProbes(in)
	var saved []livenessprobe.Saved
	for i := range c.Pod.Spec.Containers {
		if own := &c.Pod.Spec.Containers[i]; slices.Contains(take, own.Name) {
			saved = append(saved, livenessprobe.Saved{Name: own.Name, LivenessProbe: own.LivenessProbe})
			own.LivenessProbe = nil
		}
	}
	if len(saved) == 0 {
		return false, nil
	}
	return true, livenessprobe.Write(c.Pod, saved)
}

func handlerName(p *corev1.Probe) string {
	switch {
	case p.Exec != nil:
		return "exec"
	case p.HTTPGet != nil:
		return "httpGet"
	case p.TCPSocket != nil:
		return "tcpSocket"
	}
	return "grpc"
}
