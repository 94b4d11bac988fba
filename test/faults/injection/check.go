// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
)

// summary is what was checked.
type summary struct {
	sets, pods, later int // versions of SidecarSets, pods, and versions of pods after their first
	// injections are SidecarSets that pods were created with; first of them are of the named revision.
	injections, first int
	// behind are those of a version that had been replaced before the request was sent, and oldest is for how long it had been.
	behind     int
	oldest     time.Duration
	violations []string
}

// checker holds pods to what SidecarSets said when they were created.
type checker struct {
	story  *story
	starts map[string]start
	known  *known
	// late is how long a version that has been replaced may still be injected: by a manager whose cache is behind.
	late time.Duration
	summary
}

// check says what is wrong with any version of any pod.
func (c *checker) check() summary {
	for _, versions := range c.story.sets {
		c.sets += len(versions)
	}
	for _, name := range slices.Sorted(maps.Keys(c.story.pods)) {
		c.pods++
		for i, v := range c.story.pods[name] {
			if i > 0 {
				c.later++
			}
			c.pod(v, c.story.pods[name][0].pod)
		}
	}
	return c.summary
}

func (c *checker) report(v podVersion, format string, args ...any) {
	c.violations = append(c.violations, fmt.Sprintf("revision %d, pod %s: ", v.revision, v.pod.Name)+fmt.Sprintf(format, args...))
}

// pod checks one version of a pod, whose first one is given too.
func (c *checker) pod(v podVersion, first *corev1.Pod) {
	created := v.pod == first
	entries, err := podmeta.Read(v.pod, kruise.SidecarSetHashKey)
	if err != nil {
		c.report(v, "%v", err)
		return
	}
	bare, err := podmeta.Read(v.pod, kruise.SidecarSetHashWithoutImageKey)
	if err != nil {
		c.report(v, "%v", err)
		return
	}
	list := podmeta.InjectedSets(v.pod)
	if slices.Sort(list); !slices.Equal(list, slices.Sorted(maps.Keys(entries))) || !slices.Equal(list, slices.Sorted(maps.Keys(bare))) {
		c.report(v, "it is marked with %v, %v and %v", list, entries, bare)
	}
	want := map[string]corev1.Container{own: {}}
	for _, set := range slices.Sorted(maps.Keys(c.story.sets)) {
		if !strings.HasSuffix(set, "-"+v.pod.Labels[groupLabel]) {
			continue
		}
		entry, there := entries[set]
		if !there {
			if created {
				c.absent(v, set)
			}
			continue
		}
		at := c.version(v, set, entry, bare[set].Hash)
		if at < 0 {
			return
		}
		if created {
			c.injections++
			c.current(v, set, at)
		}
		expect(want, v.pod, first, set, &c.story.sets[set][at])
		if got := v.pod.Annotations["faults.regatta.sh/"+set]; got != note(c.story.sets[set][at].spec) {
			c.report(v, "its annotation of %s is %q, want %q", set, got, note(c.story.sets[set][at].spec))
		}
	}
	c.containers(v, want)
}

// note is the annotation that a SidecarSet gives.
func note(spec *kruise.SidecarSetSpec) string {
	for _, value := range spec.PatchPodMetadata[0].Annotations {
		return value
	}
	return ""
}

// version is the place of the version of a SidecarSet that a pod has; -1 if it has no single one.
func (c *checker) version(v podVersion, set string, entry podmeta.Entry, bare string) int {
	all := c.story.sets[set]
	for at := len(all) - 1; at >= 0; at-- {
		if is := &all[at]; !is.gone && is.revision < v.revision && is.hashes.Hash == entry.Hash {
			if is.name != entry.ControllerRevision || is.hashes.WithoutImage != bare {
				c.report(v, "it has %s of the hash of revision %s, and names revision %q with the hash %s without images, want %s", set, is.name, entry.ControllerRevision, bare, is.hashes.WithoutImage)
				return -1
			}
			return at
		}
	}
	c.report(v, "it has %s of the hash %s, which no version of it had until then", set, entry.Hash)
	return -1
}

// window are the versions of a SidecarSet that were current at some time between a request and when its pod was stored.
func (c *checker) window(v podVersion, set string) (from, to int) {
	all, known := c.story.sets[set], c.starts[v.pod.Name].known[set]
	from, to = 0, -1
	for i := range all {
		if all[i].revision <= known {
			from = i
		}
		if all[i].revision < v.revision {
			to = i
		}
	}
	return from, to
}

// absent is right for a SidecarSet only if there was none at some time.
func (c *checker) absent(v podVersion, set string) {
	from, to := c.window(v, set)
	for i := from; i <= to; i++ {
		if c.story.sets[set][i].gone {
			return
		}
	}
	if from <= to {
		c.report(v, "it lacks %s", set)
	}
}

// current counts what was not the latest any more, and says what had been replaced for too long.
func (c *checker) current(v podVersion, set string, at int) {
	all := c.story.sets[set]
	if strings.HasPrefix(set, named.String()) && note(all[at].spec) == "0" {
		c.first++
		return
	}
	if from, _ := c.window(v, set); at >= from {
		return
	}
	c.behind++
	for _, a := range c.known.answers[set] {
		if a.revision > all[at].revision {
			by := c.starts[v.pod.Name].at.Sub(a.at)
			if c.oldest = max(c.oldest, by); by > c.late {
				c.report(v, "it has %s of a version that had been replaced %s before", set, by.Round(time.Millisecond))
			}
			return
		}
	}
}

// expect adds the containers that a SidecarSet gives. The idle one of a hot pair may have any image that it had.
func expect(want map[string]corev1.Container, pod, first *corev1.Pod, set string, v *setVersion) {
	created := pod == first
	for i := range v.spec.InitContainers {
		c := v.spec.InitContainers[i].Container
		for j := range first.Spec.InitContainers {
			if !created && first.Spec.InitContainers[j].Name == c.Name {
				c.Image = first.Spec.InitContainers[j].Image // init containers are never updated
			}
		}
		want[c.Name] = c
	}
	for i := range v.spec.Containers {
		c := v.spec.Containers[i].Container
		if !podmeta.IsHot(&v.spec.Containers[i]) {
			want[c.Name] = c
			continue
		}
		first, second := podmeta.HotPair(c.Name)
		works := podmeta.WorkingContainers(pod)[c.Name]
		for _, name := range []string{first, second} {
			one := c
			switch one.Name = name; {
			case created && name == second:
				one.Image = emptyImage
			case !created && name != works:
				one.Image = ""
			}
			want[name] = one
		}
		if works != first && (created || works != second) {
			want[set+" has no working container"] = corev1.Container{}
		}
	}
}

// containers compares those of a pod with those that it is to have: each once, and whole.
func (c *checker) containers(v podVersion, want map[string]corev1.Container) {
	seen := map[string]bool{}
	for _, is := range slices.Concat(v.pod.Spec.InitContainers, v.pod.Spec.Containers) {
		w, ok := want[is.Name]
		switch {
		case !ok:
			c.report(v, "it has a container %s, which nothing gives it", is.Name)
		case seen[is.Name]:
			c.report(v, "it has container %s twice", is.Name)
		case is.Name == own:
		case w.Image != "" && w.Image != is.Image:
			c.report(v, "container %s has image %s, want %s", is.Name, is.Image, w.Image)
		case values(&is, shapeEnv) != values(&w, shapeEnv) || values(&is, kruise.SidecarInjectedEnv) != "[true]":
			c.report(v, "container %s has env %s and %s, want %s and [true]", is.Name, values(&is, shapeEnv), values(&is, kruise.SidecarInjectedEnv), values(&w, shapeEnv))
		case !mounted(v.pod, &is, &w):
			c.report(v, "container %s has not all mounts of volumes of the pod", is.Name)
		}
		seen[is.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !seen[name] {
			c.report(v, "it lacks container %s", name)
		}
	}
}

// values are those of all variables of a name.
func values(c *corev1.Container, name string) string {
	out := []string{}
	for _, e := range c.Env {
		if e.Name == name {
			out = append(out, e.Value)
		}
	}
	return fmt.Sprint(out)
}

func mounted(pod *corev1.Pod, is, want *corev1.Container) bool {
	for _, m := range want.VolumeMounts {
		if !slices.ContainsFunc(is.VolumeMounts, func(o corev1.VolumeMount) bool { return o.Name == m.Name }) ||
			!slices.ContainsFunc(pod.Spec.Volumes, func(o corev1.Volume) bool { return o.Name == m.Name }) {
			return false
		}
	}
	return true
}
