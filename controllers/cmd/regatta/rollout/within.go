// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// The kinds that the commands distinguish.
var (
	cloneSet         = kruise.GroupVersion.WithKind("CloneSet").GroupKind()
	advancedSet      = kruise.GroupVersion.WithKind("StatefulSet").GroupKind()
	advancedDaemon   = kruise.GroupVersion.WithKind("DaemonSet").GroupKind()
	sidecarSet       = kruise.GroupVersion.WithKind("SidecarSet").GroupKind()
	unitedDeployment = kruise.GroupVersion.WithKind("UnitedDeployment").GroupKind()
	deployment       = appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()
	nativeSet        = appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind()
	nativeDaemon     = appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind()
)

// subsetKinds are the kinds of the subsets of a UnitedDeployment, by the field of its template.
var subsetKinds = map[string]schema.GroupKind{
	"cloneSetTemplate": cloneSet, "advancedStatefulSetTemplate": advancedSet, "statefulSetTemplate": nativeSet, "deploymentTemplate": deployment,
}

// ListKinds returns the kinds that have rollouts and revisions.
func ListKinds() []edit.Kind {
	all := []schema.GroupKind{cloneSet, advancedSet, advancedDaemon, sidecarSet, unitedDeployment, deployment, nativeSet, nativeDaemon}
	return edit.SelectKinds(func(k edit.Kind) bool { return slices.Contains(all, k.GroupKind()) })
}

// describeReference names an object as the command line does, such as clone/web.
func describeReference(object *edit.Object) string {
	return object.Kind.Names[0] + "/" + object.Live.GetName()
}

// printedName names an object as the output of kubectl does, such as cloneset.apps.kruise.io/web.
func printedName(object *edit.Object) string {
	return fmt.Sprintf("%s.%s/%s", strings.ToLower(object.Kind.Kind), object.Kind.Group, object.Live.GetName())
}

// quotedName names an object as errors of kubectl do, such as clonesets.apps.kruise.io "web".
func quotedName(object *edit.Object) string {
	return fmt.Sprintf("%s.%s %q", object.Kind.Resource, object.Kind.Group, object.Live.GetName())
}

// workload is what runs the pods of an object: the object itself, or the template of the subsets of a
// UnitedDeployment.
type workload struct {
	kind edit.Kind
	// at is the path of the workload in the object. It is empty for the object itself.
	at edit.Path
}

// findWorkload finds what runs the pods of an object.
func findWorkload(kind edit.Kind, object *unstructured.Unstructured) (workload, error) {
	if kind.GroupKind() != unitedDeployment {
		return workload{kind: kind}, nil
	}
	pods, err := kind.PodSpecPath(object)
	if err != nil {
		return workload{}, err
	}
	for i, field := range pods {
		of, ok := subsetKinds[field]
		if found := edit.SelectKinds(func(k edit.Kind) bool { return k.GroupKind() == of }); ok && len(found) == 1 {
			return workload{found[0], pods[:i+1]}, nil
		}
	}
	return workload{}, fmt.Errorf("%s %s has subsets of no known kind at %s", kind.Kind, object.GetName(), pods)
}

// fieldPath is the path of a field of the workload in the object.
func (w workload) fieldPath(field ...string) edit.Path { return slices.Concat(w.at, field) }

// isPaused is true if the rollout is paused.
func (w workload) isPaused(object *unstructured.Unstructured) (bool, error) {
	if w.kind.Paused == nil {
		return false, nil
	}
	return readPaused(w.fieldPath(w.kind.Paused...), object)
}

func readPaused(field edit.Path, object *unstructured.Unstructured) (bool, error) {
	paused, _, err := unstructured.NestedBool(object.Object, field...)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", field, err)
	}
	return paused, nil
}

// onDelete is the field with the strategy of a workload whose controller updates no pod: a client must delete
// them. It is nil for the other strategies.
func (w workload) onDelete(object *unstructured.Unstructured) edit.Path {
	field := w.fieldPath("spec", "updateStrategy", "type")
	if strategy, _, _ := unstructured.NestedString(object.Object, field...); strategy == string(appsv1.OnDeleteStatefulSetStrategyType) {
		return field
	}
	return nil
}

// isObserved is true if the status is of the newest spec.
func isObserved(object *unstructured.Unstructured) bool {
	observed, _, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	return err == nil && observed >= object.GetGeneration()
}

// statusRevisions are the revisions that the status names: the last one that all pods had, and the newest one.
// Either is empty if the kind has no such field.
func statusRevisions(kind edit.Kind, object *unstructured.Unstructured) (current, update string) {
	field := "updateRevision"
	switch kind.GroupKind() {
	case sidecarSet:
		field = "latestRevision"
	case unitedDeployment:
		field = "updatedRevision"
	}
	current, _, _ = unstructured.NestedString(object.Object, "status", "currentRevision")
	update, _, _ = unstructured.NestedString(object.Object, "status", field)
	return current, update
}
