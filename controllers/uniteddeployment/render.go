// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
)

// subsetLabels are the labels of a child and of its pods.
func subsetLabels(part *kruise.Subset, revision string) map[string]string {
	return map[string]string{kruise.SubsetNameKey: part.Name, kruise.ControllerRevisionHashKey: revision}
}

// podTemplate returns the template of the pods of a subset (UD-13). The patch is applied last.
func podTemplate(d *kruise.UnitedDeployment, k kind, part *kruise.Subset, revision string) (corev1.PodTemplateSpec, error) {
	pods := k.pods(&d.Spec.Template).DeepCopy()
	pods.Labels = mergeMaps(pods.Labels, subsetLabels(part, revision))
	subset.AddNodeTerm(&pods.Spec, part.NodeSelectorTerm)
	pods.Spec.Tolerations = append(pods.Spec.Tolerations, part.Tolerations...)
	if len(part.Patch.Raw) == 0 {
		return *pods, nil
	}
	patched, err := subset.ApplyPatch(pods, part.Patch.Raw)
	if err != nil {
		return *pods, fmt.Errorf("making the patch of subset %s: %w", part.Name, err)
	}
	return *patched, nil
}

// childSelector returns the selector of a child: the UnitedDeployment's selector, and the name of the subset.
func childSelector(d *kruise.UnitedDeployment, part string) *metav1.LabelSelector {
	out := d.Spec.Selector.DeepCopy()
	if out == nil {
		out = &metav1.LabelSelector{}
	}
	out.MatchLabels = mergeMaps(out.MatchLabels, map[string]string{kruise.SubsetNameKey: part})
	return out
}

// fillChild writes the desired state into a child.
func fillChild(o client.Object, d *kruise.UnitedDeployment, k kind, part *kruise.Subset, revision string, w desiredChild, exists bool) error {
	pods, err := podTemplate(d, k, part, revision)
	if err != nil {
		return err
	}
	w.template = pods
	metadata := k.metadata(&d.Spec.Template)
	labels := mergeMaps(metadata.Labels, nil)
	if d.Spec.Selector != nil {
		labels = mergeMaps(labels, d.Spec.Selector.MatchLabels)
	}
	o.SetLabels(mergeMaps(o.GetLabels(), mergeMaps(labels, subsetLabels(part, revision))))
	o.SetAnnotations(mergeMaps(o.GetAnnotations(), mergeMaps(metadata.Annotations, map[string]string{kruise.SubsetPatchKey: string(part.Patch.Raw)})))
	k.fill(o, &d.Spec.Template, w, exists)
	return nil
}

// buildChild builds a child that is to be created.
func buildChild(d *kruise.UnitedDeployment, k kind, part *kruise.Subset, revision string, w desiredChild) (client.Object, error) {
	o := k.make()
	o.SetNamespace(d.Namespace)
	prefix := fmt.Sprintf("%s-%s-", d.Name, part.Name)
	if len(validation.IsDNS1123Subdomain(prefix+"00000")) > 0 { // such names would be too long
		prefix = d.Name + "-"
	}
	o.SetGenerateName(prefix)
	o.SetFinalizers(k.metadata(&d.Spec.Template).Finalizers)
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(d, OwnerKind())})
	w.selector = childSelector(d, part.Name)
	return o, fillChild(o, d, k, part, revision, w, false)
}

// samePatch compares patches by their meaning.
func samePatch(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
