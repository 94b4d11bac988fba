// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// The kinds that pods move between, as their own API groups name them.
const (
	deployment = "Deployment"
	cloneSet   = "CloneSet"
)

// workload is a Deployment or a CloneSet.
type workload struct {
	kind   string
	object client.Object
}

// newWorkload returns an empty object of a kind.
func newWorkload(kind string) workload {
	if kind == cloneSet {
		return workload{kind, &kruise.CloneSet{}}
	}
	return workload{kind, &appsv1.Deployment{}}
}

// copyObject returns a deep copy.
func (w workload) copyObject() workload {
	return workload{w.kind, w.object.DeepCopyObject().(client.Object)} //nolint:forcetypeassert // it is a copy of one
}

// replaceWith takes over the fields of an object of the same kind.
func (w workload) replaceWith(now workload) {
	switch o := w.object.(type) {
	case *kruise.CloneSet:
		*o = *now.object.(*kruise.CloneSet) //nolint:forcetypeassert // it is of the same kind
	case *appsv1.Deployment:
		*o = *now.object.(*appsv1.Deployment) //nolint:forcetypeassert // it is of the same kind
	}
}

// String names the workload to people.
func (w workload) String() string { return w.kind + " " + w.object.GetName() }

// commandArgument is the workload as the command line names it.
func (w workload) commandArgument() string {
	if w.kind == cloneSet {
		return "clone/" + w.object.GetName()
	}
	return "deployment/" + w.object.GetName()
}

// apiVersion is the API version in references to the workload.
func (w workload) apiVersion() string {
	if w.kind == cloneSet {
		return kruise.GroupVersion.String()
	}
	return appsv1.SchemeGroupVersion.String()
}

// podSelector says which pods are the workload's.
func (w workload) podSelector() *metav1.LabelSelector {
	if set, ok := w.object.(*kruise.CloneSet); ok {
		return set.Spec.Selector
	}
	return w.object.(*appsv1.Deployment).Spec.Selector //nolint:forcetypeassert // there are two kinds
}

// podTemplate is that of the pods.
func (w workload) podTemplate() *corev1.PodTemplateSpec {
	if set, ok := w.object.(*kruise.CloneSet); ok {
		return &set.Spec.Template
	}
	return &w.object.(*appsv1.Deployment).Spec.Template //nolint:forcetypeassert // there are two kinds
}

// setReplicas changes how many pods there should be.
func (w workload) setReplicas(n int) {
	replicas := ptr.To(int32(n)) //nolint:gosec // it is at most the replicas of another workload
	if set, ok := w.object.(*kruise.CloneSet); ok {
		set.Spec.Replicas = replicas
		return
	}
	w.object.(*appsv1.Deployment).Spec.Replicas = replicas //nolint:forcetypeassert // there are two kinds
}

// counts are the pods of a workload, as its controller counted them.
type counts struct {
	// desired is how many there should be.
	desired int
	// existing is how many there are, and available and updated are how many of these are.
	existing, available, updated int
	// observed is true if the controller has seen the present spec.
	observed bool
}

// countPods reads the counts of a workload.
func (w workload) countPods() counts {
	if set, ok := w.object.(*kruise.CloneSet); ok {
		s := &set.Status
		return counts{int(ptr.Deref(set.Spec.Replicas, 1)), int(s.Replicas), int(s.AvailableReplicas), int(s.UpdatedReplicas), s.ObservedGeneration >= set.Generation}
	}
	d := w.object.(*appsv1.Deployment) //nolint:forcetypeassert // there are two kinds
	s := &d.Status
	return counts{int(ptr.Deref(d.Spec.Replicas, 1)), int(s.Replicas), int(s.AvailableReplicas), int(s.UpdatedReplicas), s.ObservedGeneration >= d.Generation}
}

// isPaused reports whether spec has the controller update nothing.
func (w workload) isPaused() bool {
	if set, ok := w.object.(*kruise.CloneSet); ok {
		return set.Spec.UpdateStrategy.RollingUpdate != nil && set.Spec.UpdateStrategy.RollingUpdate.Paused
	}
	return w.object.(*appsv1.Deployment).Spec.Paused //nolint:forcetypeassert // there are two kinds
}

// minReady is how long a pod must be ready to be available.
func (w workload) minReady() time.Duration {
	if set, ok := w.object.(*kruise.CloneSet); ok {
		return time.Duration(set.Spec.MinReadySeconds) * time.Second
	}
	return time.Duration(w.object.(*appsv1.Deployment).Spec.MinReadySeconds) * time.Second //nolint:forcetypeassert // there are two kinds
}

// checkPartition returns an error if new pods would have an old revision.
func (w workload) checkPartition() error {
	if set, ok := w.object.(*kruise.CloneSet); ok {
		if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil && r.Partition.String() != "0" && r.Partition.String() != "0%" {
			return fmt.Errorf("spec.updateStrategy.rollingUpdate.partition of %s is %s; complete its rollout first, with regatta partition %s 0", w, r.Partition.String(), w.commandArgument())
		}
	}
	return nil
}

// checkRollout returns an error if pods of more than one revision exist.
func (w workload) checkRollout() error {
	switch c := w.countPods(); {
	case !c.observed:
		return fmt.Errorf("the controller has not seen the present spec of %s yet; is it running?", w)
	case c.updated != c.existing:
		return fmt.Errorf("%d of %d pods of %s have its newest revision; wait for its rollout first, with regatta rollout status %s", c.updated, c.existing, w, w.commandArgument())
	}
	return nil
}
