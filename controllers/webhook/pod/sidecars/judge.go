// SPDX-License-Identifier: Apache-2.0

package sidecars

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/launchpriority"
	"github.com/regatta-sh/regatta/controllers/sidecarset/marks"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	points "github.com/regatta-sh/regatta/engine/decision/injection"
)

// Judge says what pods that there are would be given if they were created now.
type Judge struct{ step *step }

// NewJudge makes one.
func NewJudge(options Options) *Judge { return &Judge{newStep(options)} }

// Given decides about a pod as it was before it got any containers of SidecarSets.
func (j *Judge) Given(ctx context.Context, stored *corev1.Pod) (points.SidecarsOutput, error) {
	_, out, err := j.step.decide(ctx, &pod.Creation{Pod: without(stored), Namespace: stored.Namespace, DryRun: true})
	return out, err
}

// without is a pod without what SidecarSets have given it.
func without(stored *corev1.Pod) *corev1.Pod {
	out := launchpriority.Declared(stored).DeepCopy() // rules look at containers where the pod declared them
	injected := func(c corev1.Container) bool { return marks.IsInjected(&c) }
	out.Spec.InitContainers = slices.DeleteFunc(out.Spec.InitContainers, injected)
	out.Spec.Containers = slices.DeleteFunc(out.Spec.Containers, injected)
	for _, key := range []string{kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey, kruise.SidecarSetInjectedListKey} {
		delete(out.Annotations, key)
	}
	return out
}
