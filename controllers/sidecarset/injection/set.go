// SPDX-License-Identifier: Apache-2.0

// Package injection puts the containers of SidecarSets into pods that are created (SS-04 to SS-07). What is put in, from which
// revision and in which order is decided before; here it is carried out.
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

// Options say how containers are put in.
type Options struct {
	Now time.Time
	// SortByName sorts the containers by name (gate EnableSortSidecarContainerByName); init containers always are.
	SortByName bool
}

// ApplySets puts the containers of SidecarSets into a pod, and what belongs to them. The pod is not to be used if it fails.
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

// merge is what is to be put into a pod.
type merge struct {
	// pod is changed, and before is as it was: containers that are put in are no source for others.
	pod, before *corev1.Pod

	inits, containers []placed
}

// placed is a container of a SidecarSet and where it goes.
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

// carryOut puts the containers where they belong.
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

// placeContainers puts a container in the place of one of its name, or else in front of all, or behind them.
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
