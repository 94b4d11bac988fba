// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
)

// pendingObjectLister has the objects for which new pods are sent.
type pendingObjectLister struct {
	// objects describes the pods of each object, by its name in claims; sets has only the SidecarSets.
	objects, sets map[string]podscope.Selector
	claims        []podscope.PendingSelector
	// adds describes the pods that rules may add SidecarSets to.
	adds []podscope.Selector
	// having are the namespaces, sorted, that have objects of other kinds or are about to have one.
	having map[match.Namespaces][]string
}

// readAwaited reads the objects for which new pods are sent.
func (w *Writer) readAwaited(ctx context.Context, from client.Reader, of *admissionv1.MutatingWebhookConfiguration) (pendingObjectLister, error) {
	out := pendingObjectLister{objects: map[string]podscope.Selector{}, sets: map[string]podscope.Selector{}, having: map[match.Namespaces][]string{}}
	list := &kruise.SidecarSetList{}
	if err := from.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return out, fmt.Errorf("listing SidecarSets: %w", err)
	}
	for i := range list.Items {
		out.sets[list.Items[i].Name] = podscope.DescribePods(&list.Items[i])
	}
	maps.Copy(out.objects, out.sets)
	for at, kind := range followed {
		if err := out.readNamespaces(ctx, from, at, kind); err != nil {
			return out, err
		}
	}
	out.claims = w.outstandingClaims(of, out.objects)
	for _, c := range out.claims {
		if at := namespacesWith(c.Kind); at != match.All {
			out.having[at] = append(out.having[at], c.Namespace)
		}
	}
	for at, namespaces := range out.having {
		out.having[at] = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	}
	if len(list.Items) > 0 {
		out.adds = w.Rules.addedPodScopes(w.Rules.engine.ActiveSnapshot())
	}
	return out, nil
}

// readNamespaces reads the objects of one kind, for which the pods of their namespaces are sent.
func (a *pendingObjectLister) readNamespaces(ctx context.Context, from client.Reader, at match.Namespaces, kind followedKind) error {
	list := kind.newList()
	if err := from.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("listing %ss: %w", kind.name, err)
	}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if o, ok := item.(client.Object); ok {
			a.objects[podscope.ObjectKey(kind.name, o.GetNamespace(), o.GetName())] = podscope.Selector{Namespaces: []string{o.GetNamespace()}}
			a.having[at] = append(a.having[at], o.GetNamespace())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading %ss: %w", kind.name, err)
	}
	return nil
}

// reachOfSidecarSets returns the descriptions of all pods that SidecarSets may concern.
func (a pendingObjectLister) reachOfSidecarSets() []podscope.Selector {
	out := slices.Clone(a.adds)
	for _, r := range a.sets {
		out = append(out, r)
	}
	for _, c := range a.claims {
		if c.Kind == "" {
			out = append(out, c.Reach)
		}
	}
	return podscope.SortDistinct(out)
}
