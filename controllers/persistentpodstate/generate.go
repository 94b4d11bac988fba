// SPDX-License-Identifier: Apache-2.0

package persistentpodstate

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// Generator creates and updates the PersistentPodState that annotations of a workload ask for (PPS-01).
type Generator struct {
	Client client.Client
	// New makes an object of the kind.
	New  func() client.Object
	Kind schema.GroupVersionKind
}

// RequestAnnotations are those annotations of a workload that ask for a PersistentPodState.
func RequestAnnotations(annotations map[string]string) map[string]string {
	return copyKeys(nil, annotations,
		kruise.AutoGeneratePersistentPodStateKey, kruise.RequiredPersistentTopologyKey, kruise.PreferredPersistentTopologyKey, kruise.PersistentPodAnnotationsKey)
}

// requestPredicate selects workloads that ask for a PersistentPodState, or did before the change.
func requestPredicate() predicate.Predicate {
	is := func(o client.Object) bool { return o.GetAnnotations()[kruise.AutoGeneratePersistentPodStateKey] != "" }
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return true },  // the annotation may have been removed meanwhile
		DeleteFunc:  func(event.DeleteEvent) bool { return false }, // the PersistentPodState is deleted with its owner
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return is(e.ObjectOld) || is(e.ObjectNew) },
	}
}

// Reconcile creates, changes or deletes the PersistentPodState of one workload. A PersistentPodState
// that the workload does not own stays as it is.
func (g *Generator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	workload := g.New()
	if err := g.Client.Get(ctx, req.NamespacedName, workload); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if workload.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	state := &kruise.PersistentPodState{}
	err := g.Client.Get(ctx, req.NamespacedName, state)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return reconcile.Result{}, fmt.Errorf("reading PersistentPodState %s: %w", req, err)
	}
	wanted := workload.GetAnnotations()[kruise.AutoGeneratePersistentPodStateKey] == "true"
	spec, topology := g.specFromAnnotations(workload)
	switch {
	case !missing && !metav1.IsControlledBy(state, workload):
		if wanted {
			ctrl.LoggerFrom(ctx).Info("The workload does not own the PersistentPodState of its name, so that stays as it is")
		}
		return reconcile.Result{}, nil
	case !wanted && !missing:
		err = g.Client.Delete(ctx, state, client.Preconditions{UID: &state.UID})
	case !wanted, !topology:
		return reconcile.Result{}, nil
	case missing:
		err = g.createState(ctx, workload, spec)
	default:
		err = g.updateState(ctx, state, spec)
	}
	if err = client.IgnoreNotFound(err); err != nil {
		return reconcile.Result{}, fmt.Errorf("keeping PersistentPodState %s: %w", req, err)
	}
	return reconcile.Result{}, nil
}

func (g *Generator) updateState(ctx context.Context, state *kruise.PersistentPodState, spec kruise.PersistentPodStateSpec) error {
	spec.PersistentPodStateRetentionPolicy = state.Spec.PersistentPodStateRetentionPolicy // no annotation sets it
	spec.TargetReference = state.Spec.TargetReference                                     // it cannot be changed
	if equality.Semantic.DeepEqual(state.Spec, spec) {
		return nil
	}
	changed := state.DeepCopy()
	changed.Spec = spec
	return g.Client.Patch(ctx, changed, client.MergeFrom(state))
}

func (g *Generator) createState(ctx context.Context, workload client.Object, spec kruise.PersistentPodStateSpec) error {
	err := g.Client.Create(ctx, &kruise.PersistentPodState{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workload.GetNamespace(), Name: workload.GetName(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(workload, g.Kind)},
		},
		Spec: spec,
	})
	if apierrors.IsAlreadyExists(err) { // the cache shows it in a moment
		return nil
	}
	return err
}

// specFromAnnotations returns the spec that the annotations ask for, and whether they ask for any topology.
func (g *Generator) specFromAnnotations(workload client.Object) (kruise.PersistentPodStateSpec, bool) {
	annotations := workload.GetAnnotations()
	required, preferred := splitKeys(annotations[kruise.RequiredPersistentTopologyKey]), splitKeys(annotations[kruise.PreferredPersistentTopologyKey])
	apiVersion, kind := g.Kind.ToAPIVersionAndKind()
	out := kruise.PersistentPodStateSpec{TargetReference: kruise.TargetReference{APIVersion: apiVersion, Kind: kind, Name: workload.GetName()}}
	if len(required) > 0 {
		out.RequiredPersistentTopology = &kruise.NodeTopologyTerm{Keys: required}
	}
	if len(preferred) > 0 {
		out.PreferredPersistentTopology = []kruise.PreferredTopologyTerm{{
			Weight: kruise.AutoGeneratedPreferenceWeight, Preference: kruise.NodeTopologyTerm{Keys: preferred},
		}}
	}
	for _, key := range splitKeys(annotations[kruise.PersistentPodAnnotationsKey]) {
		out.PersistentPodAnnotations = append(out.PersistentPodAnnotations, kruise.PersistentPodAnnotation{Key: key})
	}
	return out, len(required)+len(preferred) > 0
}

// splitKeys splits a list of keys at its commas.
func splitKeys(text string) (out []string) {
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key != "" {
			out = append(out, key)
		}
	}
	return out
}
