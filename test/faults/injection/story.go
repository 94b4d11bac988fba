// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/test/faults/versions"
)

// setVersion is a SidecarSet as a user wrote it, or its absence.
type setVersion struct {
	revision int64
	gone     bool
	spec     *kruise.SidecarSetSpec
	hashes   podmeta.Hashes
	// name of the ControllerRevision.
	name string

	uid        types.UID
	generation int64
}

// podVersion is a pod as it was stored.
type podVersion struct {
	revision int64
	pod      *corev1.Pod
}

// story is all that was stored.
type story struct {
	sets map[string][]setVersion
	// pods by their names, without versions that differ in the status alone.
	pods map[string][]podVersion
	err  error
}

func newStory() *story {
	return &story{sets: map[string][]setVersion{}, pods: map[string][]podVersion{}}
}

// note takes the next version of a SidecarSet or of a pod.
func (s *story) note(v versions.Version) {
	switch o := v.Object.(type) {
	case *kruise.SidecarSet:
		next, err := versionOf(o, v)
		if err != nil {
			s.err = err
		}
		all := s.sets[o.Name]
		if n := len(all); n == 0 || v.Gone || all[n-1].gone || all[n-1].generation != next.generation || all[n-1].uid != next.uid {
			s.sets[o.Name] = append(all, next)
		}
	case *corev1.Pod:
		all := s.pods[o.Name]
		kept := &corev1.Pod{}
		kept.Name, kept.Labels, kept.Annotations = o.Name, o.Labels, maps.Clone(o.Annotations)
		kept.Spec.InitContainers, kept.Spec.Containers, kept.Spec.Volumes = o.Spec.InitContainers, o.Spec.Containers, o.Spec.Volumes
		if n := len(all); !v.Gone && (n == 0 || !reflect.DeepEqual(all[n-1].pod, kept)) {
			s.pods[o.Name] = append(all, podVersion{v.Revision, kept})
		}
	}
}

func versionOf(set *kruise.SidecarSet, v versions.Version) (setVersion, error) {
	out := setVersion{revision: v.Revision, gone: v.Gone, spec: &set.Spec, uid: set.UID, generation: set.Generation}
	var err error
	if out.hashes, err = podmeta.HashesOf(&set.Spec); err != nil {
		return out, err
	}
	data, err := history.EncodeSpec(&set.Spec)
	if err != nil {
		return out, fmt.Errorf("naming the revision of SidecarSet %s: %w", set.Name, err)
	}
	out.name = set.Name + "-" + revision.HashData(data, 0)
	return out, nil
}
