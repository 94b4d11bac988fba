// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
)

// writeConfigurations applies the objects that differ. The fallback policy comes first, since it protects until the rest is written. An error of one
// object does not prevent the write of others.
func (w *Writer) writeConfigurations(ctx context.Context, at *present, want rendered) error {
	twin := w.writeFallbackPolicy(ctx, at.validating, want)
	differs := !equality.Semantic.DeepEqual(at.validating.Webhooks, want.validating)
	validating := settleWebhooks(w, &w.validating, at.validating, at.validating.Webhooks, want.validating, at.leftOutValidating, "", differs, func(webhooks []admissionv1.ValidatingWebhook) error {
		return w.applyValidating(ctx, at.validating, webhooks)
	})
	mutating := settleWebhooks(w, &w.mutating, at.mutating, at.mutating.Webhooks, want.mutating, at.leftOutMutating, podscope.EncodeClaims(want.claims), !want.isAt(at), func(webhooks []admissionv1.MutatingWebhook) error {
		return w.applyMutating(ctx, at.mutating, webhooks, want.claims)
	})
	if err := errors.Join(mutating, validating, twin); err != nil { // a conflict comes first, since it is retried at once
		return err
	}
	if w.Overridden != nil {
		w.Overridden.Set(float64(w.overridden))
	}
	return nil
}

// applyValidating applies the entries for changes of objects.
func (w *Writer) applyValidating(ctx context.Context, read *admissionv1.ValidatingWebhookConfiguration, webhooks []admissionv1.ValidatingWebhook) error {
	o := &admissionv1.ValidatingWebhookConfiguration{Webhooks: webhooks}
	o.TypeMeta = typeOf("ValidatingWebhookConfiguration")
	return applyWebhooks(ctx, w, o, read, webhooks)
}

// applyMutating applies the entries for new pods and the claims that they are made for. It fails with a conflict if they have changed
// since they were read: another replica may have added a claim.
func (w *Writer) applyMutating(ctx context.Context, read *admissionv1.MutatingWebhookConfiguration, webhooks []admissionv1.MutatingWebhook, claims []podscope.PendingSelector) error {
	o := &admissionv1.MutatingWebhookConfiguration{Webhooks: webhooks}
	o.TypeMeta = typeOf("MutatingWebhookConfiguration")
	o.ResourceVersion = read.ResourceVersion
	if len(claims) > 0 {
		o.Annotations = map[string]string{podscope.Annotation: podscope.EncodeClaims(claims)}
	}
	return applyWebhooks(ctx, w, o, read, webhooks)
}

// applyWebhooks applies the entries of the configuration that was read. It names the UID: a configuration that was deleted must
// not be created again.
func applyWebhooks[T webhookEntry](ctx context.Context, w *Writer, o, read client.Object, webhooks []T) error {
	o.SetName(read.GetName())
	o.SetUID(read.GetUID())
	return applyField(ctx, w, o, "webhooks", webhooks)
}

// applyField applies a field of an object, and its owner references. Entries that another client has added to the field, such as a
// condition, belong to that client, and an apply keeps them; such a condition could prevent all requests from being sent. If any is left,
// the whole field is replaced.
func applyField[V any](ctx context.Context, w *Writer, o client.Object, field string, want V) error {
	applied, err := w.patchField(ctx, o, field)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(applied.Object[field])
	if err != nil {
		return fmt.Errorf("encoding what was written to %T %s: %w", o, o.GetName(), err)
	}
	var now V
	if err := json.Unmarshal(encoded, &now); err != nil {
		return fmt.Errorf("decoding what was written to %T %s: %w", o, o.GetName(), err)
	}
	if equality.Semantic.DeepEqual(now, want) {
		return nil
	}
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("encoding %T %s: %w", o, o.GetName(), err)
	}
	if whole[field] == nil {
		whole[field] = []any{}
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": applied.GetResourceVersion()}, // it must be as it was read
		{"op": "add", "path": "/" + field, "value": whole[field]},
	})
	if err != nil {
		return fmt.Errorf("encoding %T %s: %w", o, o.GetName(), err)
	}
	if err := w.Client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(Owner)); err != nil {
		return fmt.Errorf("replacing %s of %T %s: %w", field, o, o.GetName(), err)
	}
	return nil
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
}

// patchField applies a field of an object, and its owner references, and returns the object as it is afterwards.
func (w *Writer) patchField(ctx context.Context, o client.Object, field string) (*unstructured.Unstructured, error) {
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %T %s: %w", o, o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{field: whole[field]}}
	if whole[field] == nil {
		u.Object[field] = []any{} // webhooks: the existing ones are removed
	}
	u.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	u.SetName(o.GetName())
	if uid := o.GetUID(); uid != "" {
		u.SetUID(uid)
	}
	if version := o.GetResourceVersion(); version != "" {
		u.SetResourceVersion(version)
	}
	if annotations := o.GetAnnotations(); len(annotations) > 0 {
		u.SetAnnotations(annotations)
	}
	if owners := o.GetOwnerReferences(); len(owners) > 0 {
		u.SetOwnerReferences(owners)
	}
	if err := w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(Owner), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("writing %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	ctrl.Log.Info("Updated the configuration of protection", "kind", u.GetKind(), "name", u.GetName())
	return u, nil
}

// writeFallbackPolicy writes or deletes the policy and its binding. The configuration of the chart
// owns them, so they are deleted with it.
func (w *Writer) writeFallbackPolicy(ctx context.Context, owner *admissionv1.ValidatingWebhookConfiguration, want rendered) error {
	owners := []metav1.OwnerReference{{
		APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: owner.Name, UID: owner.UID,
	}}
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	for _, o := range []client.Object{policy, binding} {
		if err := client.IgnoreNotFound(w.Live.Get(ctx, client.ObjectKey{Name: PolicyName}, o)); err != nil {
			return fmt.Errorf("reading %T %s: %w", o, PolicyName, err)
		}
	}
	if want.policy == nil {
		w.policy, w.binding = configurationContest{}, configurationContest{}
		return w.deleteOwned(ctx, binding, policy)
	}
	wantPolicy := &admissionv1.ValidatingAdmissionPolicy{TypeMeta: typeOf("ValidatingAdmissionPolicy"), Spec: *want.policy}
	wantPolicy.Name, wantPolicy.OwnerReferences = PolicyName, owners
	differs := !equality.Semantic.DeepEqual(policy.Spec, *want.policy) || !equality.Semantic.DeepEqual(policy.OwnerReferences, owners)
	if err := settleSpec(ctx, w, &w.policy, policy, wantPolicy, wantPolicy.Spec, differs); err != nil {
		return err
	}
	wantBinding := &admissionv1.ValidatingAdmissionPolicyBinding{TypeMeta: typeOf("ValidatingAdmissionPolicyBinding"), Spec: *want.binding}
	wantBinding.Name, wantBinding.OwnerReferences = PolicyName, owners
	differs = !equality.Semantic.DeepEqual(binding.Spec, *want.binding) || !equality.Semantic.DeepEqual(binding.OwnerReferences, owners)
	return settleSpec(ctx, w, &w.binding, binding, wantBinding, wantBinding.Spec, differs)
}

// settleSpec writes the policy or its binding if it differs and is not waiting for a backoff, and reports changes by other clients. No request is
// allowed while it waits: the webhook of the same objects fails closed, and the policy only adds the text.
func settleSpec[V any](ctx context.Context, w *Writer, c *configurationContest, read, want client.Object, spec V, differs bool) error {
	encoded, err := json.Marshal(want)
	if err != nil {
		return fmt.Errorf("encoding %T %s: %w", want, want.GetName(), err)
	}
	now, hash := w.Now(), sha256.Sum256(encoded)
	v := c.judgeChange(now, hash, differs, nil)
	if v.write {
		if err := applyField(ctx, w, want, "spec", spec); err != nil {
			return err
		}
	}
	c.recordVerdict(now, hash, v)
	change := "has changed its spec or owner"
	if read.GetUID() == "" {
		read.SetName(want.GetName())
		change = "has removed it"
	}
	switch {
	case v.changed:
		w.reportOnce(read, ChangedReason, fmt.Sprintf("%s %s. It is put back each time, after a wait of up to %s while it is changed again and again", writersOf(read, "spec"), change, changePace.longest), "")
	case c.changes.times == 0:
		w.reportOnce(read, ChangedReason, "", "")
	}
	if v.changed && !v.write {
		w.putBackAt(now.Add(c.changes.timeLeft(now, changePace)))
	}
	return nil
}

// deleteOwned deletes those of the objects that exist.
func (w *Writer) deleteOwned(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if o.GetUID() == "" {
			continue
		}
		uid := o.GetUID()
		err := w.Client.Delete(ctx, o, client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}
