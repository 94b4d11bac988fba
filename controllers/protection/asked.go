// SPDX-License-Identifier: Apache-2.0

// Package protection has the parts that all webhooks share that refuse deletions: the facts of a
// request, the recent deletions, and the answer and report of a refusal. The policies in
// policies/protection decide which objects are protected.
package protection

import (
	"encoding/json"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// Asked has the facts of an admission request. It has nothing of the new object: only the stored
// object says whether it is protected.
type Asked struct {
	Request points.Request
	Object  points.Object
}

// Read reads a request. An eviction has only the name of its pod, so the caller calls SetObject with
// the pod; the same is true for a delete without the old object, see HasStoredObject. The error
// reports a request that no API server sends.
func Read(req *admission.Request) (*Asked, error) {
	a := &Asked{Request: points.Request{
		UID: string(req.UID), DryRun: req.DryRun != nil && *req.DryRun,
		User: points.User{Name: req.UserInfo.Username, Groups: req.UserInfo.Groups},
	}}
	a.Object = points.Object{
		Group: req.Resource.Group, Version: req.Resource.Version, Resource: req.Resource.Resource,
		Kind: req.Kind.Kind, Namespace: req.Namespace, Name: req.Name,
	}
	switch {
	case req.Operation == admissionv1.Delete:
		a.Request.Operation = points.Delete
	case req.Operation == admissionv1.Update && req.SubResource == "resize":
		a.Request.Operation = points.Resize
	case req.Operation == admissionv1.Update:
		a.Request.Operation = points.Update
	case req.Operation == admissionv1.Create && req.SubResource == "eviction":
		return a, a.readEviction(req)
	default:
		return nil, fmt.Errorf("reading the request: %s of %s is nothing that protection is asked about", req.Operation, resourcePath(req.Resource.Resource, req.SubResource))
	}
	if len(req.OldObject.Raw) == 0 {
		return a, nil
	}
	stored := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(req.OldObject.Raw, stored); err != nil {
		return nil, fmt.Errorf("reading the stored object of the request: %w", err)
	}
	a.SetObject(stored, schema.GroupVersionKind(req.Kind))
	return a, nil
}

// readEviction reads the body of an eviction, which may be a dry run though the
// request is none.
func (a *Asked) readEviction(req *admission.Request) error {
	a.Request.Operation, a.Object.Kind = points.Evict, "Pod"
	if len(req.Object.Raw) == 0 {
		return nil
	}
	eviction := &policyv1.Eviction{}
	if err := json.Unmarshal(req.Object.Raw, eviction); err != nil {
		return fmt.Errorf("reading the eviction of the request: %w", err)
	}
	if a.Object.Name == "" {
		a.Object.Name = eviction.Name
	}
	if eviction.DeleteOptions != nil && len(eviction.DeleteOptions.DryRun) > 0 {
		a.Request.DryRun = true
	}
	return nil
}

func resourcePath(resource, sub string) string {
	if sub == "" {
		return resource
	}
	return resource + "/" + sub
}

// HasStoredObject reports whether the request came with the object that it is about.
func (a *Asked) HasStoredObject() bool { return a.Object.UID != "" }

// SetObject sets the facts of the object from the stored one.
func (a *Asked) SetObject(stored metav1.Object, kind schema.GroupVersionKind) {
	o := &a.Object
	o.Kind, o.Version = kind.Kind, kind.Version
	o.Namespace, o.Name, o.UID = stored.GetNamespace(), stored.GetName(), string(stored.GetUID())
	o.Created = stored.GetCreationTimestamp().UnixNano()
	o.Terminating = stored.GetDeletionTimestamp() != nil
	o.Labels = maps.Clone(stored.GetLabels())
	o.Annotations = maps.Clone(stored.GetAnnotations())
	// The annotation has the whole object, with any secrets in its environment variables.
	delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
	o.Owner = nil
	if ref := metav1.GetControllerOfNoCopy(stored); ref != nil {
		group, _ := schema.ParseGroupVersion(ref.APIVersion) // the API server has checked it
		o.Owner = &points.Owner{Group: group.Group, Kind: ref.Kind, Name: ref.Name}
	}
}

// Subject is the object as the subject of a decision.
func (a *Asked) Subject() decision.Subject {
	o := a.Object
	return decision.Subject{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}
