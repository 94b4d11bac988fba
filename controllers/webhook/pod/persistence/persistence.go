// SPDX-License-Identifier: Apache-2.0

// Package persistence makes pods that are created again run where a PersistentPodState remembers them
// (PPS-04). Policies decide which topology a pod requires or prefers.
package persistence

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=persistentpodstates,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// controlled is true for pods of workloads that PersistentPodStates may target: StatefulSets, and
// kinds that a white list may have.
const controlled = "object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && " +
	"!(o.kind in ['ReplicaSet', 'ReplicationController', 'DaemonSet', 'Job', 'Node', 'CloneSet', 'BroadcastJob']))"

// Options are what the step needs.
type Options struct {
	// Cached reads PersistentPodStates and nodes from the cache, Live from the API server.
	Cached, Live client.Reader
	Engine       *engine.Engine
	// Configuration has the white list.
	Configuration rules.Configuration
	// Now is time.Now if unset.
	Now func() time.Time
}

// New makes the step.
func New(options Options) pod.MutatingStep {
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &step{options}
	return pod.MutatingStep{
		Place: pod.PersistentPodState, Name: "finding out where the pod comes back",
		Match: match.Created{
			Name: "persistence", Namespaces: match.WithPersistentPodStates,
			Conditions: []admissionv1.MatchCondition{{Name: "may-be-remembered", Expression: controlled}},
		},
		Mutate: s.mutatePod,
	}
}

type step struct{ Options }

func (s *step) mutatePod(ctx context.Context, c *pod.Creation) (bool, error) {
	if c.Pod.Name == "" { // it has no name to be remembered by
		return false, nil
	}
	owner := metav1.GetControllerOfNoCopy(c.Pod)
	if owner == nil {
		return false, nil
	}
	state, err := s.findState(ctx, c.Namespace, owner)
	if err != nil || state == nil {
		return false, err
	}
	recorded, known := state.Status.PodStates[c.Pod.Name]
	if !known || len(recorded.NodeTopologyLabels) == 0 {
		return false, nil
	}
	in, err := s.gatherFacts(ctx, c, state, recorded)
	if err != nil {
		return false, err
	}
	out, _ := engine.Decide(ctx, s.Engine, placement.PersistentPoint(), decision.Subject{Kind: "Pod", Namespace: c.Namespace, Name: c.Pod.Name}, in)
	return applyPlacement(c.Pod, state.Name, out.ClampAnswer(in)), nil
}

// findState returns the PersistentPodState of a workload: the first by name, if there are several.
func (s *step) findState(ctx context.Context, namespace string, owner *metav1.OwnerReference) (*kruise.PersistentPodState, error) {
	list := &kruise.PersistentPodStateList{}
	if err := s.Cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing PersistentPodStates: %w", err)
	}
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	var found *kruise.PersistentPodState
	for i := range list.Items {
		state := &list.Items[i]
		target := state.Spec.TargetReference
		of := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind()
		if state.DeletionTimestamp == nil && of == kind && target.Name == owner.Name && (found == nil || state.Name < found.Name) {
			found = state
		}
	}
	if found == nil || kruise.RemembersPods(kind) {
		return found, nil
	}
	listed, err := s.Configuration.IsWorkloadListed(ctx, kruise.PersistentPodStateWhiteListKey, kind)
	if err != nil || !listed {
		return nil, err
	}
	return found, nil
}

func (s *step) gatherFacts(ctx context.Context, c *pod.Creation, state *kruise.PersistentPodState, recorded kruise.PodState) (placement.PersistentInput, error) {
	in := placement.PersistentInput{
		Now: s.Now().UnixNano(), State: state.Name,
		Pod:      placement.ReturningPod{Name: c.Pod.Name, Namespace: c.Namespace, Labels: c.Pod.Labels, Annotations: facts.VisibleAnnotations(c.Pod.Annotations)},
		Recorded: placement.Recorded{Node: recorded.NodeName, Labels: recorded.NodeTopologyLabels},
		Required: []string{}, Preferred: []placement.Preference{},
	}
	if required := state.Spec.RequiredPersistentTopology; required != nil {
		in.Required = append(in.Required, required.Keys...)
	}
	for _, p := range state.Spec.PreferredPersistentTopology {
		in.Preferred = append(in.Preferred, placement.Preference{Weight: p.Weight, Keys: p.Preference.Keys})
	}
	node := &corev1.Node{}
	err := s.Cached.Get(ctx, client.ObjectKey{Name: recorded.NodeName}, node)
	if apierrors.IsNotFound(err) { // the cache may not have it yet
		gone := &metav1.PartialObjectMetadata{}
		gone.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		err = s.Live.Get(ctx, client.ObjectKey{Name: recorded.NodeName}, gone)
		in.Recorded.Gone = apierrors.IsNotFound(err)
		err = client.IgnoreNotFound(err)
	}
	if err != nil {
		return in, fmt.Errorf("reading node %s: %w", recorded.NodeName, err)
	}
	in.Recorded.Unschedulable = node.Spec.Unschedulable
	in.Recorded.Ready = slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return in, nil
}

// applyPlacement adds a topology to the affinity of a pod, and reports whether there was anything to add.
func applyPlacement(p *corev1.Pod, state string, out placement.PersistentOutput) bool {
	if len(out.NodeSelector)+len(out.Preferred) == 0 {
		return false
	}
	if len(out.NodeSelector) > 0 && p.Spec.NodeSelector == nil {
		p.Spec.NodeSelector = map[string]string{}
	}
	maps.Copy(p.Spec.NodeSelector, out.NodeSelector)
	for _, preferred := range out.Preferred {
		term := corev1.PreferredSchedulingTerm{Weight: preferred.Weight}
		for _, key := range slices.SortedFunc(maps.Keys(preferred.Labels), cmp.Compare[string]) {
			term.Preference.MatchExpressions = append(term.Preference.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{preferred.Labels[key]},
			})
		}
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		if p.Spec.Affinity.NodeAffinity == nil {
			p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
		}
		node := p.Spec.Affinity.NodeAffinity
		node.PreferredDuringSchedulingIgnoredDuringExecution = append(node.PreferredDuringSchedulingIgnoredDuringExecution, term)
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[kruise.InjectedPersistentPodStateKey] = state
	return true
}
