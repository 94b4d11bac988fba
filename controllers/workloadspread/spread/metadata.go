// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

// WorkloadMetadata reads the labels and annotations of the workload of a spread past the cache, which does not have all kinds.
func (t *Targets) WorkloadMetadata(ctx context.Context, w *kruise.WorkloadSpread) (labels, annotations map[string]string, err error) {
	ref := w.Spec.TargetReference
	found := &metav1.PartialObjectMetadata{}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if w, ok := kinds.FindByGroupKind(kind.GroupKind()); ok {
		kind = w.GroupVersionKind // a spread may name any version that is served
	}
	found.SetGroupVersionKind(kind)
	if err := t.live.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: ref.Name}, found); err != nil {
		return nil, nil, fmt.Errorf("reading the labels of %s %s: %w", ref.Kind, ref.Name, err)
	}
	return found.Labels, found.Annotations, nil
}
