// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/injection"
)

// MissedPodFinder finds pods that lack the containers of a SidecarSet that they should have been given (SS-21).
type MissedPodFinder struct {
	// Given decides what would be injected into a pod if it were created now.
	Given func(ctx context.Context, pod *corev1.Pod) (points.SidecarsOutput, error)
	// Sent reports whether pods of a namespace are sent to the webhook at all.
	Sent func(namespace string, labels map[string]string) bool
	// Live reads past the cache, which does not keep who changed what, and when.
	Live client.Reader
	// Count, if set, is called with the number of pods that lack the containers, by reason.
	Count func(set string, pods map[string]int)
}

// Reasons why a pod lacks containers.
const (
	// ReasonNoAnswer is for a pod that was created after the last change of the SidecarSet: no webhook answered, and its failure policy let
	// the pod start without the containers.
	ReasonNoAnswer = "NoAnswer"
	// ReasonChanged is for a pod that was created before the last change of the SidecarSet.
	ReasonChanged = "SidecarSetChanged"
	// ReasonOlder is for a pod that was created before the SidecarSet. It is counted, but not decided about.
	ReasonOlder = "PodOlder"
)

// uninjectedPod is a pod that should have the containers, but lacks them.
type uninjectedPod struct {
	pod    *corev1.Pod
	reason string
	given  points.Injected
}

// findings are what a round has found about pods that lack the containers.
type findings struct {
	pods  []uninjectedPod
	older int
	// taken is how many pods lack the containers because another SidecarSet has injected one of the same name. conflict is the message
	// about one of them.
	taken    int
	conflict string
}

// injectionVerdict is a decision about a pod: the containers are injected, or left out for a reason.
type injectionVerdict struct {
	version string
	at      time.Time
	given   *points.Injected
	left    points.SkippedSet
}

// judgedFor is how long a decision about an unchanged pod is kept: rules and other SidecarSets may change.
const judgedFor = time.Minute

// uninjectedSets are the SidecarSets that select a pod by its labels though it does not have their containers.
func (k *Kind) uninjectedSets(ctx context.Context, pod *corev1.Pod) (out []rollout.Reference, err error) {
	has := podmeta.InjectedSets(pod)
	for _, key := range matching.KeysOf(pod) {
		list := &kruise.SidecarSetList{}
		if err := k.cached.List(ctx, list, client.MatchingFields{matching.KeysIndex: key}, client.UnsafeDisableDeepCopy); err != nil {
			return out, fmt.Errorf("listing SidecarSets: %w", err)
		}
		for i := range list.Items {
			set := &list.Items[i]
			if slices.Contains(has, set.Name) {
				continue
			}
			if selector, err := matching.NewSelector(set); err == nil && selector.MatchesLabels(pod.Labels) {
				out = append(out, rollout.Reference{NamespacedName: types.NamespacedName{Name: set.Name}, UID: set.UID})
			}
		}
	}
	return out, nil
}

// ResolveSpec implements rollout.KindWithNodeCounts: it looks for pods that lack the containers. It changes no number, and an error does
// not end the round.
func (k *Kind) ResolveSpec(ctx context.Context, r *rollout.Round, spec *rollout.Spec) error {
	if k.missed == nil {
		return nil
	}
	m, set, err := loadMemory(r)
	if err != nil {
		return err
	}
	found, err := k.findUninjectedPods(ctx, r, m, set)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "looking for pods that lack the containers of a SidecarSet", "sidecarset", set.Name)
		return nil
	}
	spec.Found = found
	if k.missed.Count != nil {
		pods := map[string]int{ReasonNoAnswer: 0, ReasonChanged: 0, ReasonOlder: found.older}
		for _, l := range found.pods {
			pods[l.reason]++
		}
		k.missed.Count(set.Name, pods)
	}
	return nil
}

func (k *Kind) findUninjectedPods(ctx context.Context, r *rollout.Round, m *memory, set *kruise.SidecarSet) (*findings, error) {
	out := &findings{}
	if set.Spec.InjectionStrategy.Paused {
		return out, nil
	}
	pods, err := k.listUninjectedPods(ctx, m, set)
	if err != nil {
		return nil, err
	}
	there := map[types.UID]bool{}
	for _, pod := range pods {
		if pod.CreationTimestamp.Before(&set.CreationTimestamp) {
			out.older++
			continue
		}
		there[pod.UID] = true
		is, err := k.decideInjection(ctx, r, m, set, pod)
		if err != nil {
			return nil, err
		}
		if is.given == nil {
			if is.left.Reason == kruise.SidecarSetContainerNameTaken {
				out.taken, out.conflict = out.taken+1, is.left.Message
			}
			continue
		}
		reason, err := k.uninjectedReason(ctx, m, set, pod)
		if err != nil {
			return nil, err
		}
		out.pods = append(out.pods, uninjectedPod{pod, reason, *is.given})
	}
	for uid := range m.judged {
		if !there[uid] {
			delete(m.judged, uid)
		}
	}
	return out, nil
}

// listUninjectedPods lists the active pods that a SidecarSet selects and that do not record it as injected. It lists only pods that
// have one of its keys.
func (k *Kind) listUninjectedPods(ctx context.Context, m *memory, set *kruise.SidecarSet) (out []*corev1.Pod, err error) {
	namespaces := k.namespaceReader(ctx)
	in := m.selector.RequiredNamespaces()
	if len(in) == 0 {
		in = []string{metav1.NamespaceAll}
	}
	for _, namespace := range in {
		for _, key := range matching.SelectorKeys(set) {
			options := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
			if key != matching.AnyKey {
				options = append(options, client.MatchingFields{matching.LabelsIndex: key})
			}
			list := &corev1.PodList{}
			if err := k.cached.List(ctx, list, options...); err != nil {
				return nil, fmt.Errorf("listing pods: %w", err)
			}
			for i := range list.Items {
				pod := &list.Items[i]
				if rollout.IsInactive(pod) || !m.selector.MatchesLabels(pod.Labels) || pod.Annotations[corev1.MirrorPodAnnotationKey] != "" ||
					slices.Contains(podmeta.InjectedSets(pod), set.Name) {
					continue
				}
				labels, there, err := namespaces(pod.Namespace)
				if err != nil {
					return nil, err
				}
				if there && m.selector.MatchesNamespace(pod.Namespace, labels) && k.missed.Sent(pod.Namespace, labels) {
					out = append(out, pod)
				}
			}
		}
	}
	return out, nil
}

// decideInjection decides what would be injected into a pod by a SidecarSet.
func (k *Kind) decideInjection(ctx context.Context, r *rollout.Round, m *memory, set *kruise.SidecarSet, pod *corev1.Pod) (injectionVerdict, error) {
	if was, ok := m.judged[pod.UID]; ok && was.version == pod.ResourceVersion && r.Now.Sub(was.at) < judgedFor {
		return was, nil
	}
	out, err := k.missed.Given(ctx, pod)
	if err != nil {
		return injectionVerdict{}, fmt.Errorf("deciding what pod %s/%s should have been given: %w", pod.Namespace, pod.Name, err)
	}
	is := injectionVerdict{version: pod.ResourceVersion, at: r.Now}
	if at := slices.IndexFunc(out.Inject, func(i points.Injected) bool { return i.Set == set.Name }); at >= 0 {
		is.given = &out.Inject[at]
	}
	if at := slices.IndexFunc(out.Left, func(l points.SkippedSet) bool { return l.Set == set.Name }); at >= 0 {
		is.left = out.Left[at]
	}
	m.judged[pod.UID] = is
	return is, nil
}

// uninjectedReason returns why a pod lacks containers, by the time of its creation.
func (k *Kind) uninjectedReason(ctx context.Context, m *memory, set *kruise.SidecarSet, pod *corev1.Pod) (string, error) {
	if m.changed.IsZero() {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(kruise.GroupVersion.WithKind("SidecarSet"))
		if err := k.missed.Live.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil {
			return "", fmt.Errorf("reading when SidecarSet %s was changed: %w", set.Name, err)
		}
		m.changed = set.CreationTimestamp.Time
		for _, by := range live.ManagedFields {
			if by.Subresource == "" && by.Time != nil && by.Time.After(m.changed) {
				m.changed = by.Time.Time
			}
		}
	}
	if pod.CreationTimestamp.After(m.changed) {
		return ReasonNoAnswer, nil
	}
	return ReasonChanged, nil
}
