// SPDX-License-Identifier: Apache-2.0

package sidecars

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/launchpriority"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	points "github.com/regatta-sh/regatta/engine/decision/injection"
)

// Judge decides which containers existing pods would get if they were created now.
type Judge struct{ step *step }

// NewJudge makes a Judge.
func NewJudge(options Options) *Judge { return &Judge{newStep(options)} }

// DecideSidecars decides about a pod as it was before containers of SidecarSets were added.
func (j *Judge) DecideSidecars(ctx context.Context, stored *corev1.Pod) (points.SidecarsOutput, error) {
	_, out, err := j.step.decideSidecars(ctx, &pod.Creation{Pod: withoutSidecars(stored), Namespace: stored.Namespace, DryRun: true})
	return out, err
}

// withoutSidecars returns a pod without the containers and fields that SidecarSets added.
func withoutSidecars(stored *corev1.Pod) *corev1.Pod {
	out := launchpriority.DeclaredPod(stored).DeepCopy() // rules read containers where the pod declared them
	injected := func(c corev1.Container) bool { return podmeta.IsInjected(&c) }
	out.Spec.InitContainers = slices.DeleteFunc(out.Spec.InitContainers, injected)
	out.Spec.Containers = slices.DeleteFunc(out.Spec.Containers, injected)
	for _, key := range []string{kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey, kruise.SidecarSetInjectedListKey} {
		delete(out.Annotations, key)
	}
	return out
}
