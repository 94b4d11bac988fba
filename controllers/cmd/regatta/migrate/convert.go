// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// labelKey is an annotation of a workload that a migration created: the label that it added to the selector.
const labelKey = "migrate.regatta.sh/label"

// convertWorkload returns a workload of the other kind with the template of a source, and with replicas 0. The label
// tells its pods from those of the source. If there is a target already, it keeps its selector.
func convertWorkload(source, target workload, label string) (workload, error) {
	selector := source.podSelector().DeepCopy()
	if selector == nil {
		return workload{}, fmt.Errorf("%s has no spec.selector", source)
	}
	exists := target.object.GetUID() != ""
	if exists {
		selector = target.podSelector().DeepCopy()
	} else {
		delete(selector.MatchLabels, source.object.GetAnnotations()[labelKey]) // an earlier migration added it
		metav1.AddLabelToSelector(selector, label, strings.ToLower(target.kind))
	}
	out := target.copyObject()
	if !exists {
		out.object.SetNamespace(source.object.GetNamespace())
		out.object.SetName(source.object.GetName())
		out.object.SetLabels(keepOwn(source.object.GetLabels()))
		annotations := keepOwn(source.object.GetAnnotations())
		annotations[labelKey] = label
		out.object.SetAnnotations(annotations)
	}
	template := source.podTemplate().DeepCopy()
	if value, ok := template.Labels[label]; ok && value != strings.ToLower(deployment) && value != strings.ToLower(cloneSet) {
		return workload{}, fmt.Errorf("label %s of the template of %s is %q already; choose another --label", label, source, value)
	}
	delete(template.Labels, label)
	delete(template.Labels, source.object.GetAnnotations()[labelKey])
	for key, value := range selector.MatchLabels {
		metav1.SetMetaDataLabel(&template.ObjectMeta, key, value)
	}
	selected, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return workload{}, fmt.Errorf("reading spec.selector of %s: %w", out, err)
	}
	if !selected.Matches(labels.Set(template.Labels)) {
		return workload{}, fmt.Errorf("spec.selector of %s (%s) does not select pods with the labels of the template of %s", out, selected, source)
	}
	switch to := out.object.(type) {
	case *kruise.CloneSet:
		from, ok := source.object.(*appsv1.Deployment)
		if !ok {
			return workload{}, errSameKind
		}
		to.Spec.Selector, to.Spec.Template = selector, *template
		if !exists { // what is there keeps its strategy
			convertToCloneSet(from, &to.Spec)
		}
	case *appsv1.Deployment:
		from, ok := source.object.(*kruise.CloneSet)
		if !ok {
			return workload{}, errSameKind
		}
		to.Spec.Selector, to.Spec.Template = selector, *template
		if !exists {
			convertToDeployment(from, &to.Spec)
		}
	}
	out.setReplicas(0)
	return out, nil
}

var errSameKind = errors.New("the source and the target are of the same kind")

// convertToCloneSet carries the fields over that both kinds have. Pods are updated in place where that is possible.
func convertToCloneSet(from *appsv1.Deployment, to *kruise.CloneSetSpec) {
	to.MinReadySeconds = from.Spec.MinReadySeconds
	to.RevisionHistoryLimit = from.Spec.RevisionHistoryLimit
	to.ProgressDeadlineSeconds = from.Spec.ProgressDeadlineSeconds
	rolling := &kruise.RollingUpdateCloneSetStrategy{PodUpdatePolicy: kruise.InPlaceIfPossiblePodUpdatePolicyType}
	if r := from.Spec.Strategy.RollingUpdate; r != nil {
		rolling.MaxUnavailable, rolling.MaxSurge = r.MaxUnavailable, r.MaxSurge
	}
	to.UpdateStrategy = kruise.CloneSetUpdateStrategy{Type: kruise.RollingUpdateCloneSetUpdateStrategyType, RollingUpdate: rolling}
}

// convertToDeployment carries the fields over that both kinds have.
func convertToDeployment(from *kruise.CloneSet, to *appsv1.DeploymentSpec) {
	to.MinReadySeconds = from.Spec.MinReadySeconds
	to.RevisionHistoryLimit = from.Spec.RevisionHistoryLimit
	to.ProgressDeadlineSeconds = from.Spec.ProgressDeadlineSeconds
	if to.ProgressDeadlineSeconds == nil && from.Spec.MinReadySeconds >= defaultProgressDeadline { // a Deployment wants more than minReadySeconds
		to.ProgressDeadlineSeconds = ptr.To(from.Spec.MinReadySeconds + defaultProgressDeadline)
	}
	to.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}
	r := from.Spec.UpdateStrategy.RollingUpdate
	if r == nil {
		return
	}
	rolling := &appsv1.RollingUpdateDeployment{MaxUnavailable: r.MaxUnavailable, MaxSurge: ptr.To(ptr.Deref(r.MaxSurge, intstr.FromInt32(0)))}
	if isZero(rolling.MaxUnavailable) && isZero(rolling.MaxSurge) {
		rolling.MaxUnavailable = ptr.To(intstr.FromInt32(1)) // a Deployment refuses 0 for both
	}
	to.Strategy.RollingUpdate = rolling
}

// defaultProgressDeadline is the default of progressDeadlineSeconds of Deployments.
const defaultProgressDeadline = 600

func isZero(n *intstr.IntOrString) bool {
	return n != nil && strings.TrimSuffix(n.String(), "%") == "0"
}

// listLostFields returns the fields of a source that the other kind has no place for.
func listLostFields(source workload) (lost []string) {
	if d, ok := source.object.(*appsv1.Deployment); ok && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return []string{"spec.strategy.type Recreate"}
	}
	set, ok := source.object.(*kruise.CloneSet)
	if !ok {
		return nil
	}
	s := &set.Spec
	add := func(present bool, field string) {
		if present {
			lost = append(lost, field)
		}
	}
	add(len(s.VolumeClaimTemplates) > 0, "spec.volumeClaimTemplates")
	add(s.Lifecycle != nil, "spec.lifecycle")
	add(s.ScaleStrategy.MaxUnavailable != nil, "spec.scaleStrategy.maxUnavailable")
	add(len(s.ScaleStrategy.PodsToDelete) > 0, "spec.scaleStrategy.podsToDelete")
	add(s.ScaleStrategy.EnablePVCReuse, "spec.scaleStrategy.enablePVCReuse")
	add(s.ScaleStrategy.ExcludePreparingDelete, "spec.scaleStrategy.excludePreparingDelete")
	add(s.UpdateStrategy.Type == kruise.OnDeleteCloneSetUpdateStrategyType, "spec.updateStrategy.type OnDelete")
	if r := s.UpdateStrategy.RollingUpdate; r != nil {
		add(r.PodUpdatePolicy != "" && r.PodUpdatePolicy != kruise.RecreatePodUpdatePolicyType, "spec.updateStrategy.rollingUpdate.podUpdatePolicy")
		add(r.InPlaceUpdateStrategy != nil, "spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy")
		add(r.PriorityStrategy != nil, "spec.updateStrategy.rollingUpdate.priorityStrategy")
		add(len(r.ScatterStrategy) > 0, "spec.updateStrategy.rollingUpdate.scatterStrategy")
	}
	return lost
}

// foreignPrefixes and foreignKeys are labels and annotations by which tools and controllers know an object of their own.
var (
	foreignPrefixes = []string{
		"deployment.kubernetes.io/", "meta.helm.sh/", "helm.sh/", "argocd.argoproj.io/", "objectset.rio.cattle.io/",
		"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "migrate.regatta.sh/",
	}
	foreignKeys = []string{"kubectl.kubernetes.io/last-applied-configuration", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance"}
)

// keepOwn returns the labels or annotations that the target gets: all but those by which a tool would take it for the source.
func keepOwn(all map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range all {
		foreign := slices.Contains(foreignKeys, key) || slices.ContainsFunc(foreignPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		if !foreign {
			out[key] = value
		}
	}
	return out
}

// keepAll returns a copy that is not nil.
func keepAll(all map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, all)
	return out
}
