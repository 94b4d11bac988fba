// SPDX-License-Identifier: Apache-2.0

// Package gatedkinds is for kinds whose feature gates are off. The API server stores their objects,
// but no controller acts on them. New ones are refused at admission with the line that turns the gate on.
// Existing objects get the condition Stalled, which kubectl wait and the health checks of GitOps tools
// understand.
//
// The controller of the kind removes the condition once its gate is on.
package gatedkinds

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs;broadcastjobs;containerrecreaterequests;ephemeraljobs;imagelistpulljobs;imagepulljobs;nodeimages;nodepodprobes;persistentpodstates;podprobemarkers;resourcedistributions;uniteddeployments;workloadspreads,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs/status;broadcastjobs/status;containerrecreaterequests/status;ephemeraljobs/status;imagelistpulljobs/status;imagepulljobs/status;nodeimages/status;nodepodprobes/status;persistentpodstates/status;podprobemarkers/status;resourcedistributions/status;uniteddeployments/status;workloadspreads/status,verbs=get;patch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets/status,verbs=get;patch

// Reconciler writes the condition to objects of one kind.
type Reconciler struct {
	// Deps has Live, which reads objects whole; the cache has only their metadata.
	reconcile.Deps
	Kind schema.GroupVersionKind
	// Message is the text of the condition; see DescribeMissing.
	Message string
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(r.Kind)
	b := r.NewController(mgr, "unserved-"+r.Kind.GroupKind().String(), nil).
		For(object, builder.OnlyMetadata) // on any change: a v1alpha1 client that writes an object that it read earlier removes the condition
	return r.CompleteController(b, r)
}

// Reconcile writes the condition to one object that does not have it.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(r.Kind)
	if err := r.Live.Get(ctx, req.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if object.GetDeletionTimestamp() != nil || isFinished(object) || isStalled(object, r.Message) {
		return reconcile.Result{}, nil
	}
	status, err := statusOf(r.Client.Scheme(), object, r.Message, r.Now())
	if err != nil {
		return reconcile.Result{}, err
	}
	changed := object.DeepCopy()
	changed.Object["status"] = status
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, changed, patch); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("writing that nothing acts on %s %s: %w", r.Kind.Kind, req, err))
	}
	return reconcile.Result{}, nil
}

// statusOf returns the status of an object with the condition, in the fields that conditions of its
// kind have. Fields that the schema requires in every status are set to zero if the object had no
// status.
func statusOf(scheme *runtime.Scheme, object *unstructured.Unstructured, message string, now time.Time) (map[string]any, error) {
	typed, err := scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	told := object.DeepCopy()
	conditions, _, err := unstructured.NestedSlice(told.Object, "status", "conditions")
	if err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	// Stalled of an earlier version goes, and what the controller of the kind wrote while its gate was on: kstatus takes an object with
	// Reconciling for one in progress, whatever Stalled says.
	conditions = append(kstatus.FilterConditions(conditions), newCondition(object, message, now))
	if err := unstructured.SetNestedSlice(told.Object, conditions, "status", "conditions"); err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	convert := runtime.DefaultUnstructuredConverter
	if err := convert.FromUnstructured(told.Object, typed); err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	whole, err := convert.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("writing the status: %w", err)
	}
	status, _ := whole["status"].(map[string]any) // it has a condition at least
	dropNulls(status)
	if phase, _ := status["phase"].(string); phase == "" && object.GetKind() == "ContainerRecreateRequest" {
		status["phase"] = "Pending" // the schema takes none without
	}
	return status, nil
}

// dropNulls removes missing values: lists, maps and times that Go writes as null.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == nil {
				delete(v, name)
			}
			dropNulls(value)
		}
	case []any:
		for _, value := range v {
			dropNulls(value)
		}
	}
}
