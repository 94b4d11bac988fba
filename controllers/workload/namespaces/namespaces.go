// SPDX-License-Identifier: Apache-2.0

// Package namespaces reads the labels of namespaces, which are facts of policies, and tells controllers when they change.
package namespaces

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// MaxLabelBytes is how many bytes the labels of one namespace may have, keys and values together, to be facts:
// the inputs of many decisions repeat them.
const MaxLabelBytes = 16 << 10

// Reasons why the labels of a namespace are missing.
const (
	// UnknownReason is the reason for a namespace that the API server does not have.
	UnknownReason = "NamespaceUnknown"
	// TooLongReason is the reason for a namespace with labels of more than MaxLabelBytes.
	TooLongReason = "NamespaceLabelsTooLong"
)

// LabelsFact is the path of the labels in inputs about a workload.
const LabelsFact = "workload.namespaceLabels"

// Reader reads the labels of namespaces.
type Reader struct {
	// Cached reads from the cache, which keeps the metadata of namespaces.
	Cached client.Reader
	// Live reads past the cache what that does not show yet: a namespace may be older than the cache knows. It may be nil.
	Live client.Reader
}

// ReadLabels returns the labels of a namespace. If they cannot be facts, it returns why. An error means that the API server did
// not answer.
func (r Reader) ReadLabels(ctx context.Context, name string) (map[string]string, *decision.MissingFact, error) {
	found := NewObject()
	err := r.Cached.Get(ctx, types.NamespacedName{Name: name}, found)
	if apierrors.IsNotFound(err) && r.Live != nil {
		err = r.Live.Get(ctx, types.NamespacedName{Name: name}, found)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, &decision.MissingFact{
			Fact: LabelsFact, Reason: UnknownReason,
			Message: fmt.Sprintf("Namespace %s is not known, so policies cannot be told its labels, and one may hold its pods; it is looked up again.", name),
		}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	bytes := 0
	for key, value := range found.Labels {
		bytes += len(key) + len(value)
	}
	if bytes > MaxLabelBytes {
		return nil, &decision.MissingFact{
			Fact: LabelsFact, Reason: TooLongReason,
			Message: fmt.Sprintf("The labels of namespace %s have more than %d bytes, so policies cannot be told them, and one may hold its pods. Take labels off the namespace.", name, MaxLabelBytes),
		}, nil
	}
	return found.Labels, nil, nil
}

// CompleteWorkload adds the labels of its namespace to the facts of a workload, or that they are missing. A cluster-scoped
// workload has none. An error means that the API server did not answer.
func (r Reader) CompleteWorkload(ctx context.Context, w *rollout.Workload) error {
	if w.Namespace == "" {
		return nil
	}
	labels, missing, err := r.ReadLabels(ctx, w.Namespace)
	if err != nil {
		return fmt.Errorf("reading what policies see of %s %s: %w", w.Kind, w.Name, err)
	}
	if w.NamespaceLabels = labels; missing != nil {
		w.MissingFacts = append(w.MissingFacts, *missing)
	}
	return nil
}

// NewObject returns an empty Namespace. The cache keeps only the metadata of such objects.
func NewObject() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return o
}

// LabelChangePredicate passes the events of namespaces whose labels have changed. A namespace that is created or deleted has no
// objects.
func LabelChangePredicate() predicate.Predicate {
	return predicate.And(predicate.LabelChangedPredicate{}, predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

// WatchLabels has the objects of a controller in a namespace reconciled when a label of the namespace changes. enqueue enqueues the
// objects in the namespace of an event.
func WatchLabels(b *builder.Builder, enqueue handler.EventHandler) *builder.Builder {
	return b.WatchesMetadata(NewObject(), enqueue, builder.WithPredicates(LabelChangePredicate()))
}
