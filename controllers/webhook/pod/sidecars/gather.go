// SPDX-License-Identifier: Apache-2.0

package sidecars

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	"github.com/regatta-sh/regatta/controllers/sidecarset/injection"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/facts"
	points "github.com/regatta-sh/regatta/engine/decision/injection"
)

// gathered has the facts about a pod and the SidecarSets that concern it.
type gathered struct {
	pod points.Pod
	// sets are the SidecarSets that concern the pod, sorted by name; all are those of the cluster.
	sets []candidate
	all  []kruise.SidecarSet

	ctx       context.Context
	step      *step
	namespace map[string]string
}

// candidate is a SidecarSet, with the revision that it names, if it names one.
type candidate struct {
	*kruise.SidecarSet
	facts points.Set
	named *appsv1.ControllerRevision
}

func (s *step) gatherSets(ctx context.Context, c *pod.Creation) (*gathered, error) {
	list := &kruise.SidecarSetList{}
	if err := s.Cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		if meta.IsNoMatchError(err) { // without the CRD there are none
			return &gathered{}, nil
		}
		return nil, fmt.Errorf("listing SidecarSets: %w", err)
	}
	s.selectors.RetainOnly(list.Items)
	if err := s.refreshAwaited(ctx, list); err != nil {
		return nil, err
	}
	g := &gathered{all: list.Items, step: s, ctx: ctx}
	for i := range list.Items {
		set := &list.Items[i]
		selector, err := s.selectors.SelectorFor(set)
		if err != nil { // admission refuses such a SidecarSet, so it was created without admission
			ctrl.LoggerFrom(ctx).Error(err, "a SidecarSet has a selector that cannot be read, and selects no pod", "sidecarset", set.Name)
			continue
		}
		if set.DeletionTimestamp != nil || !selector.MatchesLabels(c.Pod.Labels) {
			continue
		}
		if !selector.AnyNamespace() {
			if err := g.readNamespace(c.Namespace); err != nil {
				return nil, err
			}
			if !selector.MatchesNamespace(c.Namespace, g.namespace) {
				continue
			}
		}
		if err := g.appendSet(set, selector, c, true, s.Draw()); err != nil {
			return nil, err
		}
	}
	if len(g.sets) > 0 || s.Engine.ActiveSnapshot().IsPointExtended(points.SidecarsPoint().Name, subjectOf(c)) {
		if err := g.readNamespace(c.Namespace); err != nil {
			return nil, err
		}
		g.pod = facts.PodInput(c, g.namespace)
	}
	slices.SortFunc(g.sets, func(a, b candidate) int { return strings.Compare(a.Name, b.Name) })
	return g, nil
}

// readNamespace reads the labels of a namespace once. The cache may not have a new namespace yet.
func (g *gathered) readNamespace(name string) error {
	if g.namespace != nil {
		return nil
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	key := types.NamespacedName{Name: name}
	err := g.step.Cached.Get(g.ctx, key, found)
	if apierrors.IsNotFound(err) {
		err = g.step.Live.Get(g.ctx, key, found)
	}
	if err != nil {
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	g.namespace = found.Labels
	if g.namespace == nil {
		g.namespace = map[string]string{}
	}
	return nil
}

// appendSet adds the facts of a SidecarSet.
func (g *gathered) appendSet(set *kruise.SidecarSet, selector *matching.Selector, c *pod.Creation, selected bool, draw float64) error {
	one := candidate{SidecarSet: set, facts: points.Set{
		Name: set.Name, Labels: set.Labels, Annotations: facts.WithoutApplied(set.Annotations),
		Selected: selected, Local: selector.NamesNamespace(c.Namespace), Paused: set.Spec.InjectionStrategy.Paused,
		UpdatePaused: set.Spec.UpdateStrategy.Paused, UpdateSelected: selector.MatchesUpdate(c.Pod.Labels), Share: partitionShare(set.Spec.UpdateStrategy.Partition),
		Draw: draw, FailurePolicy: failurePolicy(set), Containers: containersOf(&set.Spec),
	}}
	if set.Annotations[kruise.SidecarSetCanaryKey] == "true" {
		one.facts.CanaryOf = set.Annotations[kruise.SidecarSetBaseKey]
	}
	if want := set.Spec.InjectionStrategy.Revision; want != nil {
		all, err := history.List(g.ctx, g.step.Cached, g.step.Namespace, set.Name)
		if err != nil {
			return fmt.Errorf("finding the revision of SidecarSet %s: %w", set.Name, err)
		}
		one.named = history.FindRevision(all, want)
		one.facts.Revision = &points.Revision{Policy: string(want.Policy), Found: one.named != nil}
	}
	g.sets = append(g.sets, one)
	return nil
}

// addWanted adds SidecarSets that rules want, and reports whether there are any.
func (g *gathered) addWanted(names []string, c *pod.Creation) (bool, error) {
	before := len(g.sets)
	for i := range g.all {
		set := &g.all[i]
		if set.DeletionTimestamp != nil || !slices.Contains(names, set.Name) || slices.ContainsFunc(g.sets, func(one candidate) bool { return one.Name == set.Name }) {
			continue
		}
		selector, err := g.step.selectors.SelectorFor(set)
		if err != nil {
			return false, fmt.Errorf("SidecarSet %s: %w", set.Name, err)
		}
		if err := g.appendSet(set, selector, c, false, g.step.Draw()); err != nil {
			return false, err
		}
	}
	slices.SortFunc(g.sets, func(a, b candidate) int { return strings.Compare(a.Name, b.Name) })
	return len(g.sets) > before, nil
}

func (g *gathered) decisionInput() points.SidecarsInput {
	in := points.SidecarsInput{Pod: g.pod, Sets: []points.Set{}}
	for _, one := range g.sets {
		in.Sets = append(in.Sets, one.facts)
	}
	return in
}

// chosenSets returns the SidecarSets that the decision injects, at their revisions.
func (g *gathered) chosenSets(list []points.Injected) ([]injection.Set, error) {
	var out []injection.Set
	for _, one := range list {
		at := slices.IndexFunc(g.sets, func(c candidate) bool { return c.Name == one.Set })
		if at < 0 { // the point's check refuses such an answer
			continue
		}
		set, err := g.setAtRevision(g.sets[at], one.Revision == points.Named)
		if err != nil {
			return nil, fmt.Errorf("SidecarSet %s: %w", one.Set, err)
		}
		out = append(out, set)
	}
	return out, nil
}

// setAtRevision returns a SidecarSet at the revision that it names, if it names one and named is true, and otherwise its current spec. The
// revision that a pod is marked with is always that of the containers.
func (g *gathered) setAtRevision(c candidate, named bool) (out injection.Set, err error) {
	out.Name = c.Name
	if named && c.named != nil {
		out.Revision = c.named.Name
		out.Spec, err = history.ApplyRevision(&c.Spec, c.named)
		return out, err
	}
	out.Spec = c.Spec.DeepCopy()
	out.Revision, err = history.LatestRevisionName(g.ctx, g.step.Cached, g.step.Namespace, c.SidecarSet)
	return out, err
}

// partitionShare is a partition in percent as a part of 1; nil if it is no percentage.
func partitionShare(partition *intstr.IntOrString) *float64 {
	if partition == nil || partition.Type != intstr.String {
		return nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(partition.StrVal, "%"), 64)
	if err != nil {
		return nil
	}
	percent /= 100
	return &percent
}

// containersOf returns the names that containers of a SidecarSet have in a pod.
func containersOf(spec *kruise.SidecarSetSpec) []string {
	out := []string{}
	for _, list := range [][]kruise.SidecarContainer{spec.InitContainers, spec.Containers} {
		for i := range list {
			if !podmeta.IsHot(&list[i]) {
				out = append(out, list[i].Name)
				continue
			}
			first, second := podmeta.HotPair(list[i].Name)
			out = append(out, first, second)
		}
	}
	return out
}
