// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	revisions "github.com/regatta-sh/regatta/controllers/workload/revision"
)

const (
	// deploymentRevisionKey annotates a ReplicaSet, and its Deployment, with the number of its revision.
	deploymentRevisionKey = "deployment.kubernetes.io/revision"
	// changeCauseKey annotates a workload with what a user says of a change, and its revision with the same.
	changeCauseKey = "kubernetes.io/change-cause"
	// patchDirective is a key in the data of a revision, which is a strategic merge patch.
	patchDirective = "$patch"
	// namedRevisions is how many revisions an error names.
	namedRevisions = 20
)

// recordedRevision is a revision of a workload as the cluster records it.
type recordedRevision struct {
	number  int64
	name    string
	created time.Time
	cause   string
	// object is the ControllerRevision or ReplicaSet.
	object *unstructured.Unstructured
	// fields are those of the workload that the revision has.
	fields []recordedField
	// damage is why the fields cannot be read.
	damage error
}

// recordedField is a field of a workload in a revision. A nil value says that the workload does not have the field.
type recordedField struct {
	path  edit.Path
	value any
}

// String names the revision to people.
func (r *recordedRevision) String() string {
	if r == nil {
		return "none"
	}
	return fmt.Sprintf("%d (%s)", r.number, edit.EscapeText(r.name))
}

// setFields writes the fields of the revision into a workload.
func (r *recordedRevision) setFields(kind edit.Kind, object *unstructured.Unstructured) error {
	if r.damage != nil {
		return r.damage
	}
	for _, f := range r.fields {
		if f.value == nil {
			unstructured.RemoveNestedField(object.Object, f.path...)
			continue
		}
		if err := unstructured.SetNestedField(object.Object, f.value, f.path...); err != nil {
			return fmt.Errorf("writing %s: %w", f.path, err)
		}
	}
	pods, err := kind.PodSpecPath(object)
	if err != nil {
		return fmt.Errorf("reading revision %s: %w", r.name, err)
	}
	containers := 0
	for _, field := range []string{"containers", "initContainers"} {
		list, _, err := unstructured.NestedSlice(object.Object, slices.Concat(pods, edit.Path{field})...)
		if err != nil {
			return fmt.Errorf("reading revision %s: %w", r.name, err)
		}
		containers += len(list)
	}
	if containers == 0 {
		return fmt.Errorf("reading revision %s: it has no containers", r.name)
	}
	return nil
}

// isIn is true if the fields of a workload mean the same as those of the revision.
func (r *recordedRevision) isIn(kind edit.Kind, object *unstructured.Unstructured) bool {
	recorded, live, err := r.decodeBoth(kind, object)
	return err == nil && recorded.hasEqualTypes(live) && recorded.hasEqualRest(live)
}

// describeFields is the value of the revision for printing: the template, or the fields of a SidecarSet.
func (r *recordedRevision) describeFields(kind edit.Kind) (any, error) {
	if r.damage != nil {
		return nil, r.damage
	}
	out := map[string]any{}
	for _, f := range r.fields {
		if kind.GroupKind() != sidecarSet {
			return f.value, nil
		}
		if f.value != nil {
			out[f.path[len(f.path)-1]] = f.value
		}
	}
	return out, nil
}

// workloadHistory has the revisions of a workload, oldest first.
type workloadHistory struct {
	kind   edit.Kind
	object *unstructured.Unstructured
	all    []*recordedRevision
}

// findNewest finds the newest revision, nil if there is none.
func (h *workloadHistory) findNewest() *recordedRevision {
	if len(h.all) == 0 {
		return nil
	}
	return h.all[len(h.all)-1]
}

// findRevision finds the revision with a number or a name.
func (h *workloadHistory) findRevision(text string) (*recordedRevision, error) {
	var found []*recordedRevision
	object := h.kind.Describe(h.object.GetName())
	number, err := strconv.ParseInt(text, 10, 64)
	for _, r := range h.all {
		if err == nil && r.number == number || err != nil && r.name == text {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, exit.RefusalError(fmt.Errorf("%s has no revision %s; its revisions are %s", object, text, joinRevisions(h.all)))
	}
	return nil, exit.RefusalError(fmt.Errorf("%s has several revisions %s; name one of %s by its name", object, text, joinRevisions(found)))
}

// findByName finds the revision that a status names, by its name or by its hash.
func (h *workloadHistory) findByName(name string) *recordedRevision {
	for _, r := range h.all {
		if r.name == name || !strings.Contains(name, "-") && revisions.SameHash(r.name, name) {
			return r
		}
	}
	return nil
}

// markPresent returns the revisions with the fields that the workload has now. If no revision has a field that the types
// lack, the controller does not record such fields, so that they do not distinguish revisions.
func (h *workloadHistory) markPresent() map[*recordedRevision]bool {
	equalTypes, equal, recordsRest := map[*recordedRevision]bool{}, map[*recordedRevision]bool{}, false
	for _, r := range h.all {
		recorded, live, err := r.decodeBoth(h.kind, h.object)
		if err != nil {
			continue
		}
		recordsRest = recordsRest || len(recorded.unknown) > 0
		equalTypes[r] = recorded.hasEqualTypes(live)
		equal[r] = equalTypes[r] && recorded.hasEqualRest(live)
	}
	if recordsRest {
		return equal
	}
	return equalTypes
}

// findPresent finds the newest revision with the fields that the workload has now; nil if there is none.
func (h *workloadHistory) findPresent() *recordedRevision {
	present := h.markPresent()
	for _, r := range slices.Backward(h.all) {
		if present[r] {
			return r
		}
	}
	return nil
}

// findBefore finds the newest revision with other fields than the workload has now; nil if there is none. Until the
// controller has seen a change, the newest revision is the one before the change.
func (h *workloadHistory) findBefore() *recordedRevision {
	present := h.markPresent()
	for _, r := range slices.Backward(h.all) {
		if !present[r] {
			return r
		}
	}
	return nil
}

// joinRevisions names revisions to people, newest first.
func joinRevisions(all []*recordedRevision) string {
	if len(all) == 0 {
		return "none"
	}
	var names []string
	for _, r := range slices.Backward(all) {
		if len(names) == namedRevisions {
			names = append(names, fmt.Sprintf("and %d more", len(all)-len(names)))
			break
		}
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
}

// readHistory reads the revisions of a workload. Those of a SidecarSet are in the namespace of the manager.
func readHistory(
	ctx context.Context, objects dynamic.Interface, kind edit.Kind, object *unstructured.Unstructured, managerNamespace string,
) (*workloadHistory, error) {
	resource, namespace := appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), object.GetNamespace()
	switch kind.GroupKind() {
	case deployment:
		resource = appsv1.SchemeGroupVersion.WithResource("replicasets")
	case sidecarSet:
		namespace = managerNamespace
	}
	selector, err := revisionSelector(kind, object)
	if err != nil {
		return nil, err
	}
	h := &workloadHistory{kind: kind, object: object}
	found, err := edit.ListAll(ctx, objects.Resource(resource).Namespace(namespace), selector)
	if err != nil {
		return nil, fmt.Errorf("listing the revisions of %s in namespace %s: %w", kind.Describe(object.GetName()), namespace, err)
	}
	for _, live := range found {
		if r := newRevision(kind, object, live); r != nil {
			h.all = append(h.all, r)
		}
	}
	slices.SortStableFunc(h.all, func(a, b *recordedRevision) int {
		// OpenKruise gives all revisions of some kinds the same number.
		return cmp.Or(cmp.Compare(a.number, b.number), a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	return h, nil
}

// revisionSelector selects the revisions of a workload by their labels, so that those of a large namespace need not
// all be read. The revisions of a UnitedDeployment have no labels of it.
func revisionSelector(kind edit.Kind, object *unstructured.Unstructured) (string, error) {
	switch kind.GroupKind() {
	case unitedDeployment:
		return "", nil
	case sidecarSet:
		return labels.SelectorFromSet(labels.Set{kruise.SidecarSetNameKey: object.GetName()}).String(), nil
	}
	fields, _, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err != nil {
		return "", fmt.Errorf("reading spec.selector: %w", err)
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, selector); err != nil {
		return "", fmt.Errorf("reading spec.selector: %w", err)
	}
	of, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", fmt.Errorf("reading spec.selector: %w", err)
	}
	return of.String(), nil
}

// newRevision reads a revision. It returns nil if the revision is of another workload, or if a ReplicaSet has no number.
func newRevision(kind edit.Kind, owner, object *unstructured.Unstructured) *recordedRevision {
	if !slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }) {
		return nil
	}
	r := &recordedRevision{
		name: object.GetName(), created: object.GetCreationTimestamp().Time, cause: object.GetAnnotations()[changeCauseKey], object: object,
	}
	var err error
	if kind.GroupKind() == deployment {
		if r.number, err = strconv.ParseInt(object.GetAnnotations()[deploymentRevisionKey], 10, 64); err != nil {
			return nil // the controller has not numbered it yet
		}
	} else if r.number, _, err = unstructured.NestedInt64(object.Object, "revision"); err != nil {
		r.damage = fmt.Errorf("reading revision %s: %w", r.name, err)
		return r
	}
	if r.fields, err = readFields(kind, object); err != nil {
		r.damage = fmt.Errorf("reading revision %s: %w", r.name, err)
	}
	return r
}
