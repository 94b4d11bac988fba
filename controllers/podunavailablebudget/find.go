// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
)

// Indexes of budgets. Each budget has one value in one of them, so that the budgets of a pod are found
// without reading all budgets of a namespace.
const (
	targetIndex = "budgetTarget"
	labelIndex  = "budgetLabel"
	anyLabel    = "*"
)

// AddIndexes adds the indexes that Finder uses. The CRD must be installed.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for field, f := range map[string]client.IndexerFunc{targetIndex: indexByTarget, labelIndex: indexByLabel} {
		if err := indexer.IndexField(ctx, &policy.PodUnavailableBudget{}, field, f); err != nil {
			return fmt.Errorf("indexing PodUnavailableBudgets: %w", err)
		}
	}
	return nil
}

func indexByTarget(o client.Object) []string {
	b, ok := o.(*policy.PodUnavailableBudget)
	if !ok || b.Spec.TargetReference == nil {
		return nil
	}
	return []string{targetKey(targetReference(b))}
}

func targetReference(b *policy.PodUnavailableBudget) scale.Reference {
	t := b.Spec.TargetReference
	return scale.Reference{APIVersion: t.APIVersion, Kind: t.Kind, Name: t.Name}
}

func targetKey(r scale.Reference) string { return r.GroupKind().String() + "/" + r.Name }

// indexByLabel returns one label that all pods of the budget must have, if its selector requires any.
func indexByLabel(o client.Object) []string {
	b, ok := o.(*policy.PodUnavailableBudget)
	if !ok || b.Spec.Selector == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(b.Spec.Selector.MatchLabels)) {
		return []string{key + "=" + b.Spec.Selector.MatchLabels[key]}
	}
	for _, r := range b.Spec.Selector.MatchExpressions {
		if r.Operator == metav1.LabelSelectorOpIn && len(r.Values) == 1 {
			return []string{r.Key + "=" + r.Values[0]}
		}
	}
	return []string{anyLabel}
}

// Finder finds the budgets of pods.
type Finder struct {
	budgets   client.Reader
	workloads *scale.Finder
	selectors *selectors
}

// NewFinder makes a Finder that reads budgets by the indexes.
func NewFinder(budgets client.Reader, workloads *scale.Finder) *Finder {
	return &Finder{budgets: budgets, workloads: workloads, selectors: newSelectors()}
}

// FindForPod returns the names of the budgets that select a pod or target its workload. namespace is
// that of the request, since the pod may not have its own yet.
func (f *Finder) FindForPod(ctx context.Context, namespace string, pod *corev1.Pod) ([]string, error) {
	var names []string
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		top, err := f.workloads.TopWorkload(ctx, namespace, owner)
		if err != nil {
			return nil, err
		}
		refs := map[scale.Reference]bool{scale.NewReference(owner): true}
		if top != nil {
			refs[*top] = true
		}
		for ref := range refs {
			err := f.forEachBudget(ctx, namespace, targetIndex, targetKey(ref), func(b *policy.PodUnavailableBudget) { names = append(names, b.Name) })
			if err != nil {
				return nil, err
			}
		}
	}
	bySelector := func(b *policy.PodUnavailableBudget) {
		if s, err := f.selectors.selectorOf(b); err == nil && s.Matches(labels.Set(pod.Labels)) {
			names = append(names, b.Name)
		}
	}
	for key, value := range pod.Labels {
		if err := f.forEachBudget(ctx, namespace, labelIndex, key+"="+value, bySelector); err != nil {
			return nil, err
		}
	}
	if err := f.forEachBudget(ctx, namespace, labelIndex, anyLabel, bySelector); err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// FindByTarget returns the budgets that target a workload.
func (f *Finder) FindByTarget(ctx context.Context, namespace string, ref scale.Reference) (names []string, err error) {
	err = f.forEachBudget(ctx, namespace, targetIndex, targetKey(ref), func(b *policy.PodUnavailableBudget) { names = append(names, b.Name) })
	return names, err
}

// forEachBudget calls call for every budget of an index value that is not being deleted.
func (f *Finder) forEachBudget(ctx context.Context, namespace, index, value string, call func(*policy.PodUnavailableBudget)) error {
	list := &policy.PodUnavailableBudgetList{}
	if err := f.budgets.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing PodUnavailableBudgets: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			call(&list.Items[i])
		}
	}
	return nil
}
