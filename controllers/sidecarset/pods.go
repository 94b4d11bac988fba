// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// FilterPods implements rollout.KindWithSharedPods: it keeps the pods that are selected and have all containers (SS-09).
func (k *Kind) FilterPods(ctx context.Context, r *rollout.Round, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	m, set, err := loadMemory(r)
	if err != nil {
		return nil, err
	}
	namespaces := k.namespaceReader(ctx)
	var out []*corev1.Pod
	for _, pod := range pods {
		if !m.selector.MatchesLabels(pod.Labels) || !hasAll(set, pod) {
			continue
		}
		yes := m.selector.AnyNamespace()
		if !yes {
			labels, there, err := namespaces(pod.Namespace)
			if err != nil {
				return nil, err
			}
			yes = there && m.selector.MatchesNamespace(pod.Namespace, labels)
		}
		if yes {
			out = append(out, pod)
		}
	}
	return out, nil
}

// hasAll reports whether a pod has all containers that a SidecarSet updates in place. Init containers do not count: a pod that
// was created before an init container was added still matches, and keeps getting images.
func hasAll(set *kruise.SidecarSet, pod *corev1.Pod) bool {
	working := podmeta.WorkingContainers(pod)
	for i := range set.Spec.Containers {
		c := &set.Spec.Containers[i]
		if !podmeta.IsHot(c) {
			if containerOf(pod, c.Name) == nil {
				return false
			}
			continue
		}
		first, second := podmeta.HotPair(c.Name)
		if containerOf(pod, first) == nil || containerOf(pod, second) == nil || working[c.Name] != first && working[c.Name] != second {
			return false
		}
	}
	return true
}

func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

// namesIn are the names that the containers of a SidecarSet have in a pod.
func namesIn(set *kruise.SidecarSet) (out []string) {
	for i := range set.Spec.Containers {
		c := &set.Spec.Containers[i]
		if !podmeta.IsHot(c) {
			out = append(out, c.Name)
			continue
		}
		first, second := podmeta.HotPair(c.Name)
		out = append(out, first, second)
	}
	return out
}

// IsAvailable implements rollout.KindWithSharedPods (SS-10, SS-11).
func (k *Kind) IsAvailable(o client.Object, p *facts.Pod) bool {
	set := o.(*kruise.SidecarSet)
	return p.Ready && len(findResets(set, p.Pod)) == 0 && isConsistent(set.Name, p.Pod, namesIn(set))
}

// MovableFilter implements rollout.KindWithCandidateFilter (SS-14). A pod may be updated if the strategy selects it, only images differ, no
// ready container still runs an image from before its last change, and no container has to be reset first.
func (k *Kind) MovableFilter(r *rollout.Round, _ *rollout.Facts) func(*facts.Pod) bool {
	m, set, err := loadMemory(r)
	return func(p *facts.Pod) bool {
		if err != nil || !isUpgradable(m, set.Name, p.Pod) || hasEndedTarget(set, p.Pod) {
			return false
		}
		return isSelected(m, p.Pod) && len(wantedAgain(findResets(set, p.Pod))) == 0 && !slices.ContainsFunc(namesIn(set), func(name string) bool {
			return containerstatus.IsReady(p.Pod, name) && !isConsistent(set.Name, p.Pod, []string{name})
		})
	}
}

// isSelected reports whether the update strategy selects a pod.
func isSelected(m *memory, pod *corev1.Pod) bool {
	updated := m.selector.MatchesUpdate(pod.Labels)
	return updated == nil || *updated
}

// isUpgradable reports whether a pod differs from its SidecarSet only in images.
func isUpgradable(m *memory, set string, pod *corev1.Pod) bool {
	entries, err := podmeta.Read(pod, kruise.SidecarSetHashWithoutImageKey)
	return err == nil && entries[set].Hash == m.hashes.WithoutImage
}

// hasEndedTarget reports whether the container that a hot upgrade of a pod would start has ended and is not started again:
// nothing would replace the working container.
func hasEndedTarget(set *kruise.SidecarSet, pod *corev1.Pod) bool {
	return slices.ContainsFunc(set.Spec.Containers, func(c kruise.SidecarContainer) bool {
		if !podmeta.IsHot(&c) {
			return false
		}
		target := hotTarget(set, &c, pod)
		return target != "" && containerstatus.HasEnded(pod, target)
	})
}

// isUnderWay reports whether an update of a pod may still make it available, or has made it unavailable. A container that has
// ended for good never becomes ready. It does not count against the update if it succeeded, or if it failed before the update: pods of
// Jobs whose main containers have ended do not make other pods wait.
func isUnderWay(set *kruise.SidecarSet, p *facts.Pod) bool {
	if !isConsistent(set.Name, p.Pod, namesIn(set)) || isGated(p.Pod) {
		return true
	}
	for _, one := range findResets(set, p.Pod) {
		if !containerstatus.HasEnded(p.Pod, otherOf(one.name, one.container)) { // it is still to take over, and the other one to be reset
			return true
		}
	}
	since := metav1.Time{}
	if entries, err := podmeta.Read(p.Pod, kruise.SidecarSetHashKey); err == nil {
		since = entries[set.Name].UpdateTimestamp
	}
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		if containerstatus.IsReady(p.Pod, c.Name) || containerstatus.HasSucceeded(p.Pod, c.Name) {
			return false
		}
		if !containerstatus.HasFailed(p.Pod, c.Name) {
			return true
		}
		at := containerstatus.FindStatus(p.Pod, c.Name).State.Terminated.FinishedAt
		return at.IsZero() || !at.Before(&since) // the kubelet has no time of the end for a container that it has lost
	})
}

// isGated reports whether a readiness gate keeps a pod from being ready.
func isGated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		c := inplace.FindCondition(pod, g.ConditionType)
		return c == nil || c.Status != corev1.ConditionTrue
	})
}

// isConsistent reports whether containers run the images of the spec, as far as the status of the pod shows (SS-11).
func isConsistent(set string, pod *corev1.Pod, names []string) bool {
	if len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
		return false
	}
	digests := len(names) > 0
	for _, name := range names {
		c := containerOf(pod, name)
		if c == nil {
			return false
		}
		_, digest, ok := strings.Cut(c.Image, "@")
		if digests = digests && ok; !digests {
			break
		}
		if !strings.HasSuffix(imageID(pod, name), digest) {
			return false
		}
	}
	if digests {
		return true
	}
	states, err := statesOf(pod)
	if err != nil {
		return false
	}
	return states[set] == nil || inplace.UnreplacedReason(pod, states[set], names) == ""
}

func imageID(pod *corev1.Pod, container string) string {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return pod.Status.ContainerStatuses[i].ImageID
		}
	}
	return ""
}

// statesOf returns the in-place updates that a pod records, by SidecarSet.
func statesOf(pod *corev1.Pod) (map[string]*kruise.InPlaceUpdateState, error) {
	text, ok := pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey]
	if !ok {
		return map[string]*kruise.InPlaceUpdateState{}, nil
	}
	return annotation.Decode[map[string]*kruise.InPlaceUpdateState](kruise.SidecarSetInPlaceUpdateStateKey, text)
}
