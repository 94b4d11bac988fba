// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
)

// A ValidatingAdmissionPolicy of the chart confines these to copies.
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=create;patch;update;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch

// work is one reconcile of the copies of a distribution.
type work struct {
	r    *Reconciler
	d    *kruise.ResourceDistribution
	want template
}

var (
	errConflict  = errors.New("it is not a copy of this ResourceDistribution")
	errNoneThere = errors.New("there is none")
	// errBeingDeleted reports a copy that waits for its finalizers.
	errBeingDeleted = errors.New("the copy is being deleted, and is created again once its finalizers are gone")
)

// ensureCopies creates and updates copies in namespaces.
func (w *work) ensureCopies(ctx context.Context, matched []string, there map[string]*corev1.Namespace) *failures {
	found := newFailures()
	var acts []func() error
	for _, name := range matched {
		ns := there[name]
		if ns == nil {
			found.addFailure(kruise.ResourceDistributionNamespaceNotExists, name, errors.New(kruise.ResourceDistributionNamespaceNotExistsReason))
			continue
		}
		s, ok := w.r.known.getCopy(w.d.UID, ns.UID)
		if ok && s.hash == w.want.hash && w.r.Now().Sub(s.at) < w.want.recheckAfter() {
			continue
		}
		none := w.d.Status.ObservedGeneration == 0 || !ok && w.r.Now().Sub(ns.CreationTimestamp.Time) < newFor // most likely
		acts = append(acts, func() error {
			if ok && s.hash == w.want.hash && w.isUnchanged(ctx, ns.Name, s) {
				s.at = w.r.Now()
				w.r.known.setCopy(w.d.UID, ns.UID, s)
				return nil
			}
			copied, kind, err := w.ensureCopy(ctx, ns.Name, none)
			if err != nil {
				w.r.known.forgetCopy(w.d.UID, ns.UID)
				found.addFailure(kind, ns.Name, w.concealSecret(err))
				return nil // the others are tried as well
			}
			w.r.known.setCopy(w.d.UID, ns.UID, sight{
				hash: w.want.hash, at: w.r.Now(), copied: &metav1.ObjectMeta{UID: copied.GetUID(), ResourceVersion: copied.GetResourceVersion()},
			})
			return nil
		})
	}
	_ = batch.SlowStart(writes, 1, acts) // each act keeps its own error
	return found
}

// ensureCopy brings the copy of a namespace up to date and returns it, or says what failed. none is
// true if most likely there is no copy yet.
func (w *work) ensureCopy(ctx context.Context, namespace string, none bool) (client.Object, kruise.ResourceDistributionConditionType, error) {
	if none {
		o, err := w.createCopy(ctx, namespace)
		if !apierrors.IsAlreadyExists(err) {
			return o, kruise.ResourceDistributionCreateResourceFailed, err
		}
	}
	copied, err := w.readCopy(ctx, namespace)
	switch {
	case errors.Is(err, errNoneThere):
		o, err := w.createCopy(ctx, namespace)
		if apierrors.IsAlreadyExists(err) { // created by another client meanwhile
			return nil, kruise.ResourceDistributionConflictOccurred, errConflict
		}
		return o, kruise.ResourceDistributionCreateResourceFailed, err
	case errors.Is(err, errConflict):
		return nil, kruise.ResourceDistributionConflictOccurred, err
	case err != nil:
		return nil, kruise.ResourceDistributionGetResourceFailed, err
	case copied.GetDeletionTimestamp() != nil:
		return nil, kruise.ResourceDistributionUpdateResourceFailed, errBeingDeleted
	}
	before := copied.DeepCopyObject().(client.Object)
	if !w.want.updateCopy(copied) {
		return copied, "", nil
	}
	if w.want.mustReplace(before) {
		return w.replaceCopy(ctx, before, copied)
	}
	if err := w.r.Client.Update(ctx, copied); err != nil {
		return nil, kruise.ResourceDistributionUpdateResourceFailed, fmt.Errorf("updating %s %s: %w", w.want.kind, copied.GetName(), err)
	}
	return copied, "", nil
}

// replaceCopy deletes and creates a copy that cannot be updated. A dry run checks first whether the API server accepts the new copy, so
// that no copy is deleted without a replacement.
func (w *work) replaceCopy(ctx context.Context, is, wanted client.Object) (client.Object, kruise.ResourceDistributionConditionType, error) {
	wanted.SetUID("")
	wanted.SetResourceVersion("")
	wanted.SetCreationTimestamp(metav1.Time{})
	wanted.SetManagedFields(nil)
	try := wanted.DeepCopyObject().(client.Object)
	if err := w.r.Client.Create(ctx, try, client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, kruise.ResourceDistributionUpdateResourceFailed, fmt.Errorf("trying whether %s %s can be created again: %w", w.want.kind, is.GetName(), err)
	}
	err := w.r.Client.Delete(ctx, is, client.Preconditions{UID: ptr.To(is.GetUID()), ResourceVersion: ptr.To(is.GetResourceVersion())})
	if client.IgnoreNotFound(err) != nil {
		return nil, kruise.ResourceDistributionUpdateResourceFailed, fmt.Errorf("deleting %s %s, to create it again: %w", w.want.kind, is.GetName(), err)
	}
	err = w.r.Client.Create(ctx, wanted)
	switch {
	case apierrors.IsAlreadyExists(err): // it has finalizers, or another client was faster
		return nil, kruise.ResourceDistributionUpdateResourceFailed, errBeingDeleted
	case err != nil:
		return nil, kruise.ResourceDistributionCreateResourceFailed, fmt.Errorf("creating %s %s again: %w", w.want.kind, wanted.GetName(), err)
	}
	return wanted, "", nil
}

// isUnchanged reports whether a copy is unchanged since it was last read, by its metadata alone.
func (w *work) isUnchanged(ctx context.Context, namespace string, s sight) bool {
	if s.copied == nil {
		return false
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(w.want.kind))
	o.SetName(w.want.object.GetName())
	o.SetNamespace(namespace)
	tests, err := w.testOwnership()
	return err == nil && w.r.Client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, tests)) == nil &&
		o.UID == s.copied.GetUID() && o.ResourceVersion == s.copied.GetResourceVersion()
}

// concealSecret removes from an error what may repeat a Secret: the error is written to the status and the log.
func (w *work) concealSecret(err error) error {
	if w.want.kind != "Secret" || errors.Is(err, errConflict) || errors.Is(err, errBeingDeleted) {
		return err
	}
	return w.want.secret.Error("distributing Secret "+w.want.object.GetName(), err)
}

func (w *work) createCopy(ctx context.Context, namespace string) (client.Object, error) {
	o := w.want.newCopy(namespace)
	if err := w.r.Client.Create(ctx, o); err != nil {
		return nil, fmt.Errorf("creating %s %s: %w", w.want.kind, o.GetName(), err)
	}
	return o, nil
}

// readCopy reads a copy by a patch that tests who owns it and changes nothing.
func (w *work) readCopy(ctx context.Context, namespace string) (client.Object, error) {
	o := w.want.newEmptyObject()
	o.SetName(w.want.object.GetName())
	o.SetNamespace(namespace)
	tests, err := w.testOwnership()
	if err != nil {
		return nil, err
	}
	err = w.r.Client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, tests))
	switch {
	case apierrors.IsNotFound(err):
		return nil, errNoneThere
	case apierrors.IsInvalid(err): // a test failed
		return nil, errConflict
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", w.want.kind, o.GetName(), err)
	}
	return o, nil
}

// testOwnership returns a patch that succeeds only if the distribution owns the object.
func (w *work) testOwnership() ([]byte, error) {
	tests, err := json.Marshal([]map[string]string{
		{"op": "test", "path": "/metadata/ownerReferences/0/uid", "value": string(w.d.UID)},
	})
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return tests, nil
}

// deleteLeftovers deletes copies in namespaces that must not have one, and reports whether some
// namespaces were not searched yet.
func (w *work) deleteLeftovers(ctx context.Context, p plan, found *failures) (left bool) {
	var acts []func() error
	var looked atomic.Int32
	for _, name := range slices.Sorted(maps.Keys(p.there)) {
		ns := p.there[name]
		if _, keep := slices.BinarySearch(p.matched, name); keep {
			continue
		}
		if s, ok := w.r.known.getCopy(w.d.UID, ns.UID); ok && s.hash == "" {
			continue
		}
		acts = append(acts, func() error {
			if looked.Add(1) > mostLeftovers {
				return nil
			}
			if err := w.deleteCopy(ctx, name); err != nil {
				found.addFailure(kruise.ResourceDistributionDeleteResourceFailed, name, w.concealSecret(err))
				return nil
			}
			w.r.known.setCopy(w.d.UID, ns.UID, sight{at: w.r.Now()})
			return nil
		})
	}
	_ = batch.RunParallel(writes, acts) // each act keeps its own error
	return len(acts) > mostLeftovers
}

func (w *work) deleteCopy(ctx context.Context, namespace string) error {
	copied, err := w.readCopy(ctx, namespace)
	if errors.Is(err, errNoneThere) || errors.Is(err, errConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	err = w.r.Client.Delete(ctx, copied, client.Preconditions{UID: ptr.To(copied.GetUID()), ResourceVersion: ptr.To(copied.GetResourceVersion())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", w.want.kind, copied.GetName(), err)
	}
	return nil
}
