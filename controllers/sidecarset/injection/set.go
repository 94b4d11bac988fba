// SPDX-License-Identifier: Apache-2.0

// Package injection puts the containers of SidecarSets into pods that are created (SS-04 to SS-07). What is injected, from which
// revision and in which order, is decided before; this package carries it out.
package injection

import (
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
)

// Set is a SidecarSet at one of its revisions.
type Set struct {
	Name string
	// Revision is the name of the revision; empty where the SidecarSet is so new that it has none.
	Revision string
	Spec     *kruise.SidecarSetSpec
}

// Options control how containers are injected.
type Options struct {
	Now time.Time
	// SortByName sorts the containers by name (gate EnableSortSidecarContainerByName). Init containers are always sorted.
	SortByName bool
}

// ApplySets injects the containers of SidecarSets into a pod, with their volumes, pull secrets and metadata. If it fails, the pod must not
// be used.
func ApplySets(pod *corev1.Pod, sets []Set, o Options) error {
	if len(sets) == 0 {
		return nil
	}
	for i := range sets {
		if err := PatchMetadata(pod, sets[i].Spec.PatchPodMetadata); err != nil {
			return fieldError(&sets[i], "patchPodMetadata", err)
		}
	}
	m := &merge{pod: pod, before: pod.DeepCopy()}
	for i := range sets {
		if err := m.addSet(&sets[i], o); err != nil {
			return err
		}
	}
	if err := m.carryOut(o); err != nil {
		return err
	}
	for i := range sets {
		podmeta.AddInjected(pod, sets[i].Name)
	}
	return nil
}

// merge collects what is to be injected into a pod.
type merge struct {
	// pod is changed, and before is the pod as it was: injected containers are no source of mounts and variables.
	pod, before *corev1.Pod

	inits, containers []placed
}

// placed is a container of a SidecarSet and its position.
type placed struct {
	set       string
	container corev1.Container
	inFront   bool
}

func (m *merge) addSet(set *Set, o Options) error {
	hashes, err := podmeta.HashesOf(set.Spec)
	if err != nil {
		return fieldError(set, "containers", err)
	}
	for i := range set.Spec.InitContainers {
		m.buildContainer(set, &set.Spec.InitContainers[i], true)
	}
	for i := range set.Spec.Containers {
		m.buildContainer(set, &set.Spec.Containers[i], false)
	}
	m.addVolumes(set)
	m.addPullSecrets(set.Spec.ImagePullSecrets)
	stamp := podmeta.InjectionRecord{Set: set.Name, Hashes: hashes, Revision: set.Revision, Containers: podmeta.ContainersOf(set.Spec), Now: o.Now}
	return stamp.AnnotatePod(m.pod)
}

// carryOut puts the containers into their positions.
func (m *merge) carryOut(o Options) error {
	byName := func(a, b placed) int { return strings.Compare(a.container.Name, b.container.Name) }
	slices.SortStableFunc(m.inits, byName)
	if o.SortByName {
		slices.SortStableFunc(m.containers, byName)
	}
	if err := errors.Join(m.checkUniqueNames(), m.checkDevices()); err != nil {
		return err
	}
	m.pod.Spec.InitContainers = placeContainers(m.pod.Spec.InitContainers, m.inits)
	m.pod.Spec.Containers = placeContainers(m.pod.Spec.Containers, m.containers)
	return nil
}

// placeContainers replaces the container of the same name by an injected one, or else puts that in front of all others, or behind them.
func placeContainers(own []corev1.Container, added []placed) []corev1.Container {
	var front, behind []corev1.Container
	for _, p := range added {
		if at := slices.IndexFunc(own, func(c corev1.Container) bool { return c.Name == p.container.Name }); at >= 0 {
			own[at] = p.container
		} else if p.inFront {
			front = append(front, p.container)
		} else {
			behind = append(behind, p.container)
		}
	}
	return slices.Concat(front, own, behind)
}
