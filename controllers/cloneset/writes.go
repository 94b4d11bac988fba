package cloneset

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
)

// OwnerKind is the kind in the owner reference of pods, claims and revisions.
// It is the older version, which is what users see on their pods.
func OwnerKind() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("CloneSet") }

// turn is how long a round goes on beginning writes. What is left then is done in
// the next round, behind the CloneSets that wait: beside a hundred others that
// are created or updated, each gets on, and its status is never old.
const turn = 500 * time.Millisecond

// inTurn leaves out what has not begun when the turn is over, but for as many of
// the first as may be under way at once: however slow the rest, a round gets on.
func (r *Reconciler) inTurn(w *world, acts []func() error) []func() error {
	out := slices.Clone(acts)
	for i := r.writes; i < len(acts); i++ {
		out[i] = func() error {
			if r.now().Sub(w.now) < r.turn {
				return acts[i]()
			}
			w.again.in(time.Millisecond)
			return nil
		}
	}
	return out
}

// inParallel does acts, as many at once as may be, until the turn is over.
func (r *Reconciler) inParallel(w *world, acts []func() error) error {
	return parallel(r.writes, r.inTurn(w, acts))
}

// parallel does all acts, at most limit at once, and returns their errors
// joined: one that fails does not keep the others from being done.
func parallel(limit int, acts []func() error) error {
	errs := make([]error, len(acts))
	var g errgroup.Group
	g.SetLimit(max(limit, 1))
	for i, act := range acts {
		g.Go(func() error { errs[i] = act(); return nil })
	}
	_ = g.Wait() // each act keeps its own error
	return errors.Join(errs...)
}

// slowly does acts in rounds of so many, twice as many and so on, and from limit
// on as parallel does. It stops at the first error: what was not tried is tried
// by the next reconcile.
func slowly(limit, size int, acts []func() error) error {
	for ; size < limit && len(acts) > 0; size *= 2 {
		n := min(size, len(acts))
		if err := parallel(limit, acts[:n]); err != nil {
			return err
		}
		acts = acts[n:]
	}
	var failed atomic.Bool
	careful := make([]func() error, len(acts))
	for i, act := range acts {
		careful[i] = func() error {
			if failed.Load() {
				return nil
			}
			err := act()
			if err != nil {
				failed.Store(true)
			}
			return err
		}
	}
	return parallel(limit, careful)
}

// wrote notes a pod as it was written, so that the next round sees it so
// whatever the cache says; nil if it was not. An act that fails half-way has
// written too. Where nobody can say whether a write was done, the pod is read.
func (r *Reconciler) wrote(ctx context.Context, w *world, was, pod *corev1.Pod, err error) {
	if pod != nil {
		r.overlay.Patched(w.set.UID, pod)
	}
	if !indeterminate(err) {
		return
	}
	if found, gone := r.reread(ctx, was); found != nil && !gone {
		r.overlay.Patched(w.set.UID, found)
	}
}

// reread reads a pod past the cache. gone is true when it is not there any more,
// or on its way out; if that cannot be said, both are nothing.
func (r *Reconciler) reread(ctx context.Context, was *corev1.Pod) (found *corev1.Pod, gone bool) {
	found = &corev1.Pod{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(was), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true
	case err != nil:
		return nil, false
	}
	return found, found.UID != was.UID || found.DeletionTimestamp != nil
}

// indeterminate says whether an error leaves open if what was asked for was done: there
// was no answer, or one that the API server failed half-way.
func indeterminate(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// deleteObject deletes this very pod: one of the same name that came after it
// is left alone. A pod that may go because it is not available is deleted only as
// it was seen: it may have become so since. A conflict says that there is another
// pod, or another version, or is somebody's way to refuse.
func (r *Reconciler) deleteObject(ctx context.Context, w *world, p *facts.Pod) error {
	only := client.Preconditions{UID: &p.UID}
	if p.State != kruise.LifecycleStatePreparingDelete && !p.Available(w.minReady, w.now) {
		only.ResourceVersion = &p.ResourceVersion
	}
	err := r.client.Delete(ctx, p.Pod, only)
	if apierrors.IsConflict(err) || indeterminate(err) {
		if _, gone := r.reread(ctx, p.Pod); gone {
			return nil
		}
	}
	return client.IgnoreNotFound(err)
}

func labelSet(o metav1.Object) labels.Set { return labels.Set(o.GetLabels()) }
