// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// groupLabel is on every pod. All SidecarSets of the group select the pod.
const groupLabel = "faults.regatta.sh/group"

// shapeEnv changes more of a container than its image.
const shapeEnv = "FAULTS_SHAPE"

// form is what a SidecarSet is like.
type form int

const (
	// logs has an init container, a volume and a container that is updated in place.
	logs form = iota
	// mesh has a hot pair.
	mesh
	// named has half of the new pods get its first revision.
	named
	// passing loses a container, and is deleted and created again.
	passing
	forms
)

func (f form) String() string { return [...]string{"logs", "mesh", "named", "passing"}[f] }

// content is what one version of a SidecarSet says. No two versions of one have the same number.
type content struct {
	form
	group         int
	number, shape int
	// less is true when a container was removed.
	less bool
}

func (c content) name() string { return fmt.Sprintf("%s-%d", c.form, c.group) }

// key of the annotation that pods get with the number.
func (c content) key() string { return "faults.regatta.sh/" + c.name() }

func (c content) image() string { return fmt.Sprintf("registry.k8s.io/pause:v%d", c.number) }

// emptyImage is that of the container of a hot pair that does not work.
const emptyImage = "registry.k8s.io/pause:empty"

func (c content) container(name string) kruise.SidecarContainer {
	return kruise.SidecarContainer{Container: corev1.Container{
		Name: name, Image: c.image(), Env: []corev1.EnvVar{{Name: shapeEnv, Value: fmt.Sprint(c.shape)}},
	}}
}

func (c content) spec() kruise.SidecarSetSpec {
	name := c.name()
	all := intstr.FromString("100%")
	s := kruise.SidecarSetSpec{
		Selector:         &metav1.LabelSelector{MatchLabels: map[string]string{groupLabel: fmt.Sprint(c.group)}},
		Containers:       []kruise.SidecarContainer{c.container(name)},
		PatchPodMetadata: []kruise.SidecarSetPatchPodMetadata{{Annotations: map[string]string{c.key(): fmt.Sprint(c.number)}, PatchPolicy: kruise.SidecarSetOverwritePatchPolicy}},
	}
	s.UpdateStrategy.MaxUnavailable = &all
	switch c.form {
	case logs:
		s.InitContainers = []kruise.SidecarContainer{c.container(name + "-init")}
		s.Volumes = []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: name, MountPath: "/var/log"}}
	case mesh:
		s.Containers[0].UpgradeStrategy = kruise.SidecarContainerUpgradeStrategy{UpgradeType: kruise.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: emptyImage}
	case named:
		s.CustomVersion = fmt.Sprint("v", c.number)
		s.UpdateStrategy.Partition = ptr.To(intstr.FromString("50%"))
		if c.number > 0 {
			s.InjectionStrategy.Revision = &kruise.SidecarSetInjectRevision{CustomVersion: ptr.To("v0"), Policy: kruise.PartialSidecarSetInjectRevisionPolicy}
		}
	case passing:
		s.UpdateStrategy.Type = kruise.NotUpdateSidecarSetStrategyType
		if !c.less {
			s.Containers = append(s.Containers, c.container(name+"-more"))
		}
	}
	return s
}

func (c content) set() *kruise.SidecarSet {
	return &kruise.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: c.name()}, Spec: c.spec()}
}
