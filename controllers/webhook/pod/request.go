// SPDX-License-Identifier: Apache-2.0

// Package pod has the webhooks of pods: the mutating one changes new pods, and the validating one decides whether pods may be
// deleted, evicted or updated. Both are pipelines of steps (PA-04). Each step is a package of its own, and defines its place,
// its feature gates and the pods that concern it.
package pod

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// Request is an admission request that would make a pod unavailable, and that a policy or a budget may refuse.
type Request struct {
	*protection.Asked
	// Stored is the current pod. New is the updated pod, nil if the pod is to be deleted.
	Stored, New *corev1.Pod
	// Harmless is true for a change that does not make the pod unavailable.
	Harmless bool
}

// readRequest reads a request; nil if it makes no pod unavailable. A request that may count is decided by the current pod in the API
// server, and not by the pod in the request.
func readRequest(ctx context.Context, pods client.Reader, req *admission.Request) (*Request, error) {
	switch {
	case req.Operation == admissionv1.Delete && req.SubResource == "":
	case req.Operation == admissionv1.Update && (req.SubResource == "" || req.SubResource == "resize"):
	case req.Operation == admissionv1.Create && req.SubResource == "eviction":
		if !aboutPods(req) {
			return nil, errNotPods
		}
		return readEviction(ctx, pods, req)
	default:
		return nil, nil
	}
	if len(req.OldObject.Raw) == 0 {
		return nil, nil
	}
	if !aboutPods(req) {
		return nil, errNotPods
	}
	asked, err := protection.Read(req)
	if err != nil {
		return nil, err
	}
	r := &Request{Asked: asked, Stored: &corev1.Pod{}}
	if err := json.Unmarshal(req.OldObject.Raw, r.Stored); err != nil {
		return nil, fmt.Errorf("reading the stored pod of the request: %w", err)
	}
	if req.Operation == admissionv1.Update {
		r.New = &corev1.Pod{}
		if err := json.Unmarshal(req.Object.Raw, r.New); err != nil {
			return nil, fmt.Errorf("reading the new pod of the request: %w", err)
		}
		r.classifyUpdate()
	}
	if r.Harmless || r.Asked.Request.DryRun { // neither kind of request counts
		return r, nil
	}
	if confirmed, err := r.confirmLivePod(ctx, pods, req); err != nil || !confirmed {
		return nil, err
	}
	r.classifyUpdate()
	return r, nil
}

// classifyUpdate finds out what an update does to the pod.
func (r *Request) classifyUpdate() {
	if r.New == nil {
		return
	}
	op := availability.ClassifyChange(r.Stored, r.New)
	if r.Harmless = op == ""; !r.Harmless {
		r.Asked.Request.Operation = op
	}
}

func readEviction(ctx context.Context, pods client.Reader, req *admission.Request) (*Request, error) {
	asked, err := protection.Read(req)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	err = pods.Get(ctx, types.NamespacedName{Namespace: req.Namespace, Name: asked.Object.Name}, pod)
	if apierrors.IsNotFound(err) {
		return nil, nil // the API server returns that error itself
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pod that is to be evicted: %w", err)
	}
	asked.SetObject(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	return &Request{Asked: asked, Stored: pod}, nil
}

// IsUpdate reports whether the pod is to be changed, and not deleted.
func (r *Request) IsUpdate() bool {
	op := r.Asked.Request.Operation
	return op == points.Update || op == points.Resize
}
