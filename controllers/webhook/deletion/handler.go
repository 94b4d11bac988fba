// SPDX-License-Identifier: Apache-2.0

// Package deletion answers /validate-deletion: whether an object of any kind may be deleted (DP-01),
// or changed if a user's rule concerns the change. Policies decide; this package counts, as facts, the
// objects that would be deleted too.
package deletion

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=list
// +kubebuilder:rbac:groups="",resources=namespaces;services;pods,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets;uniteddeployments,verbs=get
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get

// Kinds says how kinds are protected.
type Kinds interface {
	// Kind is nil for a kind whose objects the label does not protect, and an error
	// if no policy has answered yet.
	Kind(ctx context.Context, group, resource string) (*points.ProtectedKind, error)
	FeatureGates() points.Gates
}

// Handler answers requests about all kinds.
type Handler struct {
	Engine   *engine.Engine
	Kinds    Kinds
	Reporter *protection.Reporter
	Recent   *protection.Recent
	// Live and Metadata list the objects that would be deleted too. They do not use a cache, so that a new
	// object counts. Metadata also confirms that the deleted object exists.
	Live     client.Reader
	Metadata metadata.Interface
	Now      func() time.Time
}

var _ admission.Handler = &Handler{}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" {
		return admission.Allowed("")
	}
	asked, err := protection.Read(&request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if !asked.HasStoredObject() || asked.Object.Terminating {
		return admission.Allowed("")
	}
	in := points.DeletionInput{
		Now: h.Now().UnixNano(), Request: asked.Request, Object: asked.Object,
		Recent: h.Recent.CountDeletes(asked), Gates: h.Kinds.FeatureGates(), Replicas: decodeReplicas(request.OldObject.Raw),
	}
	value := asked.Object.Labels[policyv1alpha1.DeletionProtectionKey]
	if asked.Request.Operation == points.Delete {
		// Without the label the protection by the label does not matter.
		if in.Kind, err = h.Kinds.Kind(ctx, asked.Object.Group, asked.Object.Resource); err != nil && value != "" {
			return admission.Errored(http.StatusInternalServerError, err)
		}
	}
	if in.Kind != nil && value == policyv1alpha1.DeletionProtectionCascading {
		h.countDependents(ctx, &in, request.OldObject.Raw)
	}
	out, record := engine.Decide(ctx, h.Engine, points.DeletionPoint(), decidedAs(asked), in)
	if !out.Allow {
		return h.Reporter.RefuseRequest(asked, record, out.Reasons)
	}
	if h.isDeletionConfirmed(ctx, asked) {
		h.Recent.RecordRemoval(asked)
	}
	if out.Exempt {
		return h.Reporter.ExemptRequest(asked, record, out.Reasons)
	}
	return h.Reporter.AllowRequest(record, out.Reasons)
}

// decidedAs returns the subject by which the engine finds the policies that take part. A resource that only the administrator
// of the cluster decides about has a subject of no namespace, so that no bundle of a namespace takes part.
func decidedAs(asked *protection.Asked) decision.Subject {
	s := asked.Subject()
	if points.IsAdministered(asked.Object.Group, asked.Object.Resource) && s.Namespace != "" {
		s.Namespace, s.Name = "", s.Namespace+"/"+s.Name
	}
	return s
}

// decodeReplicas returns spec.replicas, nil if it is not set.
func decodeReplicas(raw []byte) *int {
	object := struct {
		Spec struct {
			Replicas *int `json:"replicas"`
		} `json:"spec"`
	}{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil // in another kind spec.replicas may be no number
	}
	return object.Spec.Replicas
}
