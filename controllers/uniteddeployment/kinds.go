// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// kind is how the workloads of one kind of template are read and written. The workload of a subset is called
// its child.
type kind struct {
	schema.GroupVersionKind
	make     func() client.Object
	makeList func() client.ObjectList
	// is reports whether a SubsetTemplate is of this kind.
	is func(*kruise.SubsetTemplate) bool
	// metadata and pods return the metadata and the pod template in a SubsetTemplate.
	metadata func(*kruise.SubsetTemplate) *metav1.ObjectMeta
	pods     func(*kruise.SubsetTemplate) *corev1.PodTemplateSpec
	// fill writes a template into a child. Fields that cannot be changed in an existing child stay as they are.
	fill func(o client.Object, t *kruise.SubsetTemplate, w desiredChild, exists bool)
	read func(o client.Object) child
}

// desiredChild is the desired state of a child.
type desiredChild struct {
	selector            *metav1.LabelSelector
	template            corev1.PodTemplateSpec
	replicas, partition int32
	// unavailable raises maxUnavailable, so that pods that wait for room do not use it up; 0 raises nothing.
	unavailable int
}

// child is a child, and what was read from it.
type child struct {
	client.Object
	kind     kind
	selector *metav1.LabelSelector
	// replicas and partition are in the spec.
	replicas, partition int32
	// unavailable is maxUnavailable as a number, if it can be raised.
	unavailable int
	// observed is true when the status is that of the present spec.
	observed bool
	// pods, ready, available, updated and updatedReady are in the status. If the status has no updatedReady, countReady is true, and
	// pods are counted.
	pods, ready, available, updated, updatedReady int32
	countReady                                    bool
	failure                                       string
	// refused is true while its controller cannot create pods, for example because a quota is used up.
	refused bool
}

// subsetName returns the name of the child's subset.
func (c *child) subsetName() string {
	if name, ok := c.GetLabels()[kruise.SubsetNameKey]; ok || c.selector == nil {
		return name
	}
	return c.selector.MatchLabels[kruise.SubsetNameKey] // the label is missing, and the selector cannot be changed
}

// allKinds are the kinds of the four templates.
func allKinds() []kind {
	return []kind{cloneSets(), advancedStatefulSets(), statefulSets(), nativeDeployments()}
}

// kindOf returns the kind of a template, and false if the template is empty.
func kindOf(t *kruise.SubsetTemplate) (kind, bool) {
	for _, k := range allKinds() {
		if k.is(t) {
			return k, true
		}
	}
	return kind{}, false
}

func cloneSets() kind {
	return kind{
		GroupVersionKind: kruise.GroupVersion.WithKind("CloneSet"),
		make:             func() client.Object { return &kruise.CloneSet{} },
		makeList:         func() client.ObjectList { return &kruise.CloneSetList{} },
		is:               func(t *kruise.SubsetTemplate) bool { return t.CloneSetTemplate != nil },
		metadata:         func(t *kruise.SubsetTemplate) *metav1.ObjectMeta { return &t.CloneSetTemplate.ObjectMeta },
		pods:             func(t *kruise.SubsetTemplate) *corev1.PodTemplateSpec { return &t.CloneSetTemplate.Spec.Template },
		fill: func(o client.Object, t *kruise.SubsetTemplate, w desiredChild, exists bool) {
			set := o.(*kruise.CloneSet)
			was := set.Spec
			set.Spec = *t.CloneSetTemplate.Spec.DeepCopy()
			set.Spec.Selector, set.Spec.Template, set.Spec.Replicas = w.selector, w.template, &w.replicas
			if set.Spec.UpdateStrategy.RollingUpdate == nil {
				set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{}
			}
			rolling := set.Spec.UpdateStrategy.RollingUpdate
			rolling.Partition = ptr.To(intstr.FromInt32(w.partition))
			if w.unavailable > 0 {
				rolling.MaxUnavailable = ptr.To(intstr.FromInt(w.unavailable))
			}
			if exists { // users set it on a child
				set.Spec.ScaleStrategy.PodsToDelete = was.ScaleStrategy.PodsToDelete
			}
		},
		read: func(o client.Object) child {
			set := o.(*kruise.CloneSet)
			c := child{Object: o, selector: set.Spec.Selector, replicas: ptr.Deref(set.Spec.Replicas, 1)}
			if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
				if n, err := budget.ResolvePartition(rolling.Partition, int(c.replicas)); err == nil {
					c.partition = int32(n) //nolint:gosec // at most the replicas
				}
			}
			c.unavailable = cloneSetUnavailable(&set.Spec, c.replicas)
			s := &set.Status
			c.observed = s.ObservedGeneration >= set.Generation
			c.pods, c.ready, c.available, c.updated, c.updatedReady = s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas, s.UpdatedReadyReplicas
			c.refused = slices.ContainsFunc(s.Conditions, func(c kruise.CloneSetCondition) bool {
				return c.Type == kruise.CloneSetConditionFailedScale && c.Status == corev1.ConditionTrue
			})
			return c
		},
	}
}

func advancedStatefulSets() kind {
	return kind{
		GroupVersionKind: kruise.GroupVersion.WithKind("StatefulSet"),
		make:             func() client.Object { return &kruise.StatefulSet{} },
		makeList:         func() client.ObjectList { return &kruise.StatefulSetList{} },
		is:               func(t *kruise.SubsetTemplate) bool { return t.AdvancedStatefulSetTemplate != nil },
		metadata:         func(t *kruise.SubsetTemplate) *metav1.ObjectMeta { return &t.AdvancedStatefulSetTemplate.ObjectMeta },
		pods: func(t *kruise.SubsetTemplate) *corev1.PodTemplateSpec {
			return &t.AdvancedStatefulSetTemplate.Spec.Template
		},
		fill: func(o client.Object, t *kruise.SubsetTemplate, w desiredChild, exists bool) {
			set := o.(*kruise.StatefulSet)
			from := t.AdvancedStatefulSetTemplate.Spec.DeepCopy()
			if !exists {
				set.Spec = *from
				set.Spec.Selector = w.selector
			}
			set.Spec.Template, set.Spec.Replicas, set.Spec.UpdateStrategy = w.template, &w.replicas, from.UpdateStrategy
			if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
				return
			}
			if set.Spec.UpdateStrategy.RollingUpdate == nil {
				set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateStatefulSetStrategy{}
			}
			set.Spec.UpdateStrategy.RollingUpdate.Partition = &w.partition
		},
		read: func(o client.Object) child {
			set := o.(*kruise.StatefulSet)
			c := child{Object: o, selector: set.Spec.Selector, replicas: ptr.Deref(set.Spec.Replicas, 1)}
			if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
				c.partition = ptr.Deref(rolling.Partition, 0)
			}
			s := &set.Status
			c.observed = s.ObservedGeneration >= set.Generation
			c.pods, c.ready, c.available, c.updated, c.updatedReady = s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas, s.UpdatedReadyReplicas
			failed := rollout.FindCondition(s.Conditions, string(kruise.StatefulSetFailedCreatePod))
			c.refused = failed != nil && failed.Status == corev1.ConditionTrue
			return c
		},
	}
}

func statefulSets() kind {
	return kind{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		make:             func() client.Object { return &appsv1.StatefulSet{} },
		makeList:         func() client.ObjectList { return &appsv1.StatefulSetList{} },
		is:               func(t *kruise.SubsetTemplate) bool { return t.StatefulSetTemplate != nil },
		metadata:         func(t *kruise.SubsetTemplate) *metav1.ObjectMeta { return &t.StatefulSetTemplate.ObjectMeta },
		pods:             func(t *kruise.SubsetTemplate) *corev1.PodTemplateSpec { return &t.StatefulSetTemplate.Spec.Template },
		fill: func(o client.Object, t *kruise.SubsetTemplate, w desiredChild, exists bool) {
			set := o.(*appsv1.StatefulSet)
			from := t.StatefulSetTemplate.Spec.DeepCopy()
			if !exists {
				set.Spec = *from
				set.Spec.Selector = w.selector
			}
			set.Spec.Template, set.Spec.Replicas, set.Spec.UpdateStrategy = w.template, &w.replicas, from.UpdateStrategy
			set.Spec.MinReadySeconds, set.Spec.Ordinals = from.MinReadySeconds, from.Ordinals
			set.Spec.PersistentVolumeClaimRetentionPolicy = from.PersistentVolumeClaimRetentionPolicy
			if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
				return
			}
			if set.Spec.UpdateStrategy.RollingUpdate == nil {
				set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
			}
			set.Spec.UpdateStrategy.RollingUpdate.Partition = &w.partition
		},
		read: func(o client.Object) child {
			set := o.(*appsv1.StatefulSet)
			c := child{Object: o, selector: set.Spec.Selector, replicas: ptr.Deref(set.Spec.Replicas, 1), countReady: true}
			if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
				c.partition = ptr.Deref(rolling.Partition, 0)
			}
			s := &set.Status
			c.observed = s.ObservedGeneration >= set.Generation
			c.pods, c.ready, c.available, c.updated = s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas
			c.refused = c.observed && c.available == c.pods // no condition shows it: the controller waits for none of the pods, and has not created more
			return c
		},
	}
}

func nativeDeployments() kind {
	return kind{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		make:             func() client.Object { return &appsv1.Deployment{} },
		makeList:         func() client.ObjectList { return &appsv1.DeploymentList{} },
		is:               func(t *kruise.SubsetTemplate) bool { return t.DeploymentTemplate != nil },
		metadata:         func(t *kruise.SubsetTemplate) *metav1.ObjectMeta { return &t.DeploymentTemplate.ObjectMeta },
		pods:             func(t *kruise.SubsetTemplate) *corev1.PodTemplateSpec { return &t.DeploymentTemplate.Spec.Template },
		fill: func(o client.Object, t *kruise.SubsetTemplate, w desiredChild, _ bool) {
			d := o.(*appsv1.Deployment)
			d.Spec = *t.DeploymentTemplate.Spec.DeepCopy()
			d.Spec.Selector, d.Spec.Template, d.Spec.Replicas = w.selector, w.template, &w.replicas
			if w.unavailable > 0 && d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
				if d.Spec.Strategy.RollingUpdate == nil {
					d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
				}
				d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt(w.unavailable))
			}
		},
		read: func(o client.Object) child {
			d := o.(*appsv1.Deployment)
			c := child{Object: o, selector: d.Spec.Selector, replicas: ptr.Deref(d.Spec.Replicas, 1), countReady: true}
			c.unavailable = deploymentUnavailable(&d.Spec, c.replicas)
			s := &d.Status
			c.observed = s.ObservedGeneration >= d.Generation
			c.pods, c.ready, c.available, c.updated = s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas
			for _, condition := range s.Conditions {
				if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
					c.failure, c.refused = condition.Message, true
				}
			}
			return c
		},
	}
}

// cloneSetUnavailable returns maxUnavailable of a CloneSet, or the default if it is not set.
func cloneSetUnavailable(spec *kruise.CloneSetSpec, replicas int32) int {
	var v *intstr.IntOrString
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil {
		v = rolling.MaxUnavailable
	}
	return resolveUnavailable(v, kruise.DefaultCloneSetMaxUnavailable, replicas)
}

// deploymentUnavailable returns maxUnavailable of a Deployment, or the default if it is not set.
func deploymentUnavailable(spec *appsv1.DeploymentSpec, replicas int32) int {
	var v *intstr.IntOrString
	if rolling := spec.Strategy.RollingUpdate; rolling != nil {
		v = rolling.MaxUnavailable
	}
	return resolveUnavailable(v, "25%", replicas)
}

func resolveUnavailable(v *intstr.IntOrString, unset string, replicas int32) int {
	n, err := budget.ResolvePercent(ptr.Deref(v, intstr.FromString(unset)), int(replicas), true)
	if err != nil {
		return 0
	}
	return n
}

// mergeMaps returns both maps; values of upper take precedence.
func mergeMaps(lower, upper map[string]string) map[string]string {
	out := maps.Clone(lower)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, upper)
	return out
}
