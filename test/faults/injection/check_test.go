// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	injected "github.com/regatta-sh/regatta/controllers/sidecarset/injection"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	webhook "github.com/regatta-sh/regatta/controllers/webhook/sidecarset"
	"github.com/regatta-sh/regatta/test/faults/versions"
)

// tale is a story of SidecarSets of two forms, and of a pod. Each call is the next revision.
type tale struct {
	t *testing.T
	*story
	known    *known
	revision int64
	now      time.Time
	sets     map[string]injected.Set
}

func begun(t *testing.T) *tale {
	s := &tale{t: t, story: newStory(), known: newKnown(), now: time.Unix(1_800_000_000, 0), sets: map[string]injected.Set{}}
	return s.set(content{form: logs}).set(content{form: mesh})
}

// set stores a version, and has it answered.
func (s *tale) set(c content) *tale {
	s.revision++
	o := c.set()
	webhook.Default(o)
	o.UID, o.Generation, o.ResourceVersion = "u", s.revision, fmt.Sprint(s.revision)
	s.note(versions.Version{Object: o, Revision: s.revision})
	if s.err != nil {
		s.t.Fatal(s.err)
	}
	if err := s.known.add(o); err != nil {
		s.t.Fatal(err)
	}
	s.known.answers[o.Name][len(s.known.answers[o.Name])-1].at = s.now
	all := s.story.sets[o.Name]
	s.sets[o.Name] = injected.Set{Name: o.Name, Revision: all[len(all)-1].name, Spec: &o.Spec}
	return s
}

func (s *tale) gone(f form) *tale {
	s.revision++
	o := content{form: f}.set()
	s.note(versions.Version{Object: o, Revision: s.revision, Gone: true})
	return s
}

// pod is what the webhook makes of a pod now.
func (s *tale) pod() *corev1.Pod {
	p := podOf("p", 0)
	if err := injected.ApplySets(p, []injected.Set{s.sets["logs-0"], s.sets["mesh-0"]}, injected.Options{Now: s.now}); err != nil {
		s.t.Fatal(err)
	}
	return p
}

func TestWhatIsWrongWithAPodIsFound(t *testing.T) {
	shape := func(p *corev1.Pod, container, value string) {
		for i := range p.Spec.Containers {
			for j := range p.Spec.Containers[i].Env {
				if p.Spec.Containers[i].Name == container && p.Spec.Containers[i].Env[j].Name == shapeEnv {
					p.Spec.Containers[i].Env[j].Value = value
				}
			}
		}
	}
	second := content{form: logs, number: 1, shape: 1}
	for name, tc := range map[string]struct {
		before func(*tale)
		made   func(*tale) *corev1.Pod
		change func(*corev1.Pod)
		want   []string
	}{
		"nothing": {},
		"it lacks a container": {change: func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:len(p.Spec.Containers)-1] },
			want: []string{"it lacks container app"}},
		"it lacks an init container": {change: func(p *corev1.Pod) { p.Spec.InitContainers = nil }, want: []string{"it lacks container logs-0-init"}},
		"it has one twice": {change: func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0]) },
			want: []string{"twice"}},
		"it has one of no SidecarSet": {change: func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" },
			want: []string{"has a container other", "it lacks container"}},
		"it lacks a SidecarSet": {made: func(s *tale) *corev1.Pod {
			p := podOf("p", 0)
			if err := injected.ApplySets(p, []injected.Set{s.sets["logs-0"]}, injected.Options{Now: s.now}); err != nil {
				s.t.Fatal(err)
			}
			return p
		}, want: []string{"it lacks mesh-0"}},
		"it has no sidecar at all":        {made: func(*tale) *corev1.Pod { return podOf("p", 0) }, want: []string{"it lacks logs-0", "it lacks mesh-0"}},
		"a SidecarSet was gone meanwhile": {before: func(s *tale) { s.gone(logs).gone(mesh) }, made: func(*tale) *corev1.Pod { return podOf("p", 0) }},
		"the containers are of another version": {before: func(s *tale) { s.set(second) }, change: func(p *corev1.Pod) { shape(p, "logs-0", "0") },
			want: []string{"has env [0] and [true], want [1]"}},
		"it names the revision before": {before: func(s *tale) {
			first := s.sets["logs-0"].Revision
			s.set(second)
			s.sets["logs-0"] = injected.Set{Name: "logs-0", Revision: first, Spec: s.sets["logs-0"].Spec}
		}, want: []string{"and names revision"}},
		"its annotation is of another version": {change: func(p *corev1.Pod) { p.Annotations["faults.regatta.sh/logs-0"] = "7" }, want: []string{`is "7", want "0"`}},
		"its mark is of no version": {change: func(p *corev1.Pod) {
			p.Annotations[kruise.SidecarSetHashKey] = `{"logs-0":{"hash":"x"},"mesh-0":{"hash":"x"}}`
		}, want: []string{"no version of it had"}},
		"it is not on the list":        {change: func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetInjectedListKey] = "mesh-0" }, want: []string{"it is marked with"}},
		"a volume is not there":        {change: func(p *corev1.Pod) { p.Spec.Volumes = nil }, want: []string{"not all mounts"}},
		"no container of a pair works": {change: func(p *corev1.Pod) { delete(p.Annotations, kruise.SidecarSetWorkingHotUpgradeKey) }, want: []string{"mesh-0 has no working container"}},
		"the version had been replaced": {made: func(s *tale) *corev1.Pod {
			p := s.pod()
			s.set(second)
			s.now = s.now.Add(time.Minute)
			return p
		}, want: []string{"that had been replaced 1m0s before"}},
		"the version had been replaced a moment ago": {made: func(s *tale) *corev1.Pod {
			p := s.pod()
			s.set(second)
			s.now = s.now.Add(time.Second)
			return p
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			if tc.before != nil {
				tc.before(s)
			}
			if tc.made == nil {
				tc.made = (*tale).pod
			}
			p := tc.made(s)
			if tc.change != nil {
				tc.change(p)
			}
			starts := map[string]start{"p": {at: s.now, known: s.known.now()}}
			if strings.Contains(name, "meanwhile") { // the request was sent before
				starts["p"] = start{at: s.now, known: map[string]int64{}}
			}
			s.note(versions.Version{Object: p, Revision: s.revision + 1})
			got := (&checker{story: s.story, starts: starts, known: s.known, late: 5 * time.Second}).check()
			if len(got.violations) != len(tc.want) {
				t.Fatalf("found %q, want %q", got.violations, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(got.violations[i], want) {
					t.Errorf("found %q, want %q", got.violations[i], want)
				}
			}
		})
	}
}

// A later version has other images, and is held to the version that it is marked with as well.
func TestAPodThatIsUpdatedInPlaceIsCheckedToo(t *testing.T) {
	const v0, v1 = "registry.k8s.io/pause:v0", "registry.k8s.io/pause:v1"
	for _, tc := range []struct {
		image, init string
		wrong       bool
	}{{v1, v0, false}, {v0, v0, true}, {v1, v1, true}} { // init containers keep theirs
		s := begun(t)
		p := s.pod()
		s.note(versions.Version{Object: p.DeepCopy(), Revision: s.revision + 1})
		s.revision++
		s.set(content{form: logs, number: 1})
		next := s.sets["logs-0"]
		hashes, err := podmeta.HashesOf(next.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := (podmeta.InjectionRecord{Set: "logs-0", Hashes: hashes, Revision: next.Revision, Now: s.now}).AnnotatePod(p); err != nil {
			t.Fatal(err)
		}
		p.Annotations["faults.regatta.sh/logs-0"] = "1"
		for i := range p.Spec.Containers {
			if p.Spec.Containers[i].Name == "logs-0" {
				p.Spec.Containers[i].Image = tc.image
			}
		}
		p.Spec.InitContainers[0].Image = tc.init
		s.note(versions.Version{Object: p, Revision: s.revision + 1})
		got := (&checker{story: s.story, starts: map[string]start{"p": {at: s.now, known: map[string]int64{}}}, known: s.known}).check()
		if (len(got.violations) > 0) != tc.wrong || got.later != 1 {
			t.Errorf("with %s and %s there are %q, and %d later versions", tc.image, tc.init, got.violations, got.later)
		}
	}
}
