// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	merge "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/accounting"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/webhook/review"
)

// home is the namespace in which the chart installs a manager.
const home = "kruise-system"

// admissionChain is the part of an API server that handles a write to a pod before it is stored:
// it sends the write to the webhooks that match it.
type admissionChain struct {
	namespace     string
	change, check []webhook
	handlers      map[string]admission.Handler // by path
	answers       *explain.Store
	requests      int
}

// mutatePod calls the mutating webhooks for a pod that is to be created.
func (a *admissionChain) mutatePod(ctx context.Context, pod *corev1.Pod) error {
	for _, h := range a.change {
		req, err := a.buildRequest(ctx, h, admissionv1.Create, "", nil, pod)
		if err != nil || req == nil {
			if err != nil {
				return err
			}
			continue
		}
		answer := a.handlers[h.path].Handle(ctx, *req)
		if !answer.Allowed {
			return newDenialError(h.name, answer)
		}
		raw, err := review.ApplyPatches(req.Object.Raw, answer)
		if err != nil {
			return err
		}
		into := &corev1.Pod{}
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("reading pod %s: %w", pod.Name, err)
		}
		*pod = *into
	}
	return nil
}

// hasValidator reports whether any validating webhook matches a kind of write.
func (a *admissionChain) hasValidator(operation admissionv1.Operation, sub string) bool {
	return slices.ContainsFunc(a.check, func(h webhook) bool { return h.rulesMatch(operation, sub) })
}

// validatePod calls the validating webhooks for a change of a pod, or for its deletion if now is nil. The error is that of the
// webhook that refuses it; the refusal then has the reason.
func (a *admissionChain) validatePod(ctx context.Context, sub string, was, now *corev1.Pod, dryRun ...string) (*Refusal, error) {
	operation, write := admissionv1.Update, writeUpdate
	if now == nil {
		operation, write = admissionv1.Delete, writeDelete
	}
	for _, h := range a.check {
		req, err := a.buildRequest(ctx, h, operation, sub, was, now)
		if err != nil {
			return nil, err
		}
		if req == nil {
			continue
		}
		req.DryRun = ptr.To(len(dryRun) > 0)
		answer := a.handlers[h.path].Handle(ctx, *req)
		if answer.Allowed {
			continue
		}
		var refusal *Refusal
		for _, why := range a.answers.FindRefusals(explain.RefusalFilter{UID: string(req.UID)}, 1) {
			refusal = refusalOf(write, was, why.Rule, why.Reason, why.Message, why.Until)
		}
		return refusal, newDenialError(h.name, answer)
	}
	return nil, nil
}

// buildRequest builds the request to a webhook, nil if the webhook does not match.
func (a *admissionChain) buildRequest(ctx context.Context, h webhook, operation admissionv1.Operation, sub string, was, now *corev1.Pod) (*admission.Request, error) {
	if !h.rulesMatch(operation, sub) {
		return nil, nil
	}
	vars := map[string]any{"object": nil, "oldObject": nil}
	pod := now
	for name, p := range map[string]*corev1.Pod{"object": now, "oldObject": was} {
		if p == nil {
			continue
		}
		whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		if err != nil {
			return nil, fmt.Errorf("encoding pod %s: %w", p.Name, err)
		}
		vars[name] = whole
	}
	if was != nil {
		pod = was
	}
	about := map[string]any{"operation": string(operation), "namespace": a.namespace, "resource": map[string]any{"group": "", "resource": "pods"}}
	if sub != "" {
		about["subResource"] = sub
	}
	vars["request"] = about
	if yes, err := h.conditionsMatch(ctx, vars); err != nil || !yes {
		return nil, err
	}
	a.requests++
	req := &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: types.UID(fmt.Sprintf("simulated-%06d", a.requests)), Operation: operation, SubResource: sub, Namespace: a.namespace, Name: pod.Name,
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		UserInfo: authenticationv1.UserInfo{
			Username: accounting.ManagerUser(home), Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + home, "system:authenticated"},
		},
	}}
	for into, p := range map[*runtime.RawExtension]*corev1.Pod{&req.Object: now, &req.OldObject: was} {
		if p == nil {
			continue
		}
		raw, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encoding pod %s: %w", p.Name, err)
		}
		into.Raw = raw
	}
	return req, nil
}

// newDenialError returns the error that an API server makes of an answer that denies a request.
func newDenialError(by string, answer admission.Response) error {
	status := *answer.Result
	status.Status = metav1.StatusFailure
	status.Message = fmt.Sprintf("admission webhook %q denied the request: %s", by, status.Message)
	return &apierrors.StatusError{ErrStatus: status}
}

// applyPatch returns a pod with a patch applied.
func applyPatch(was *corev1.Pod, o client.Object, p client.Patch) (*corev1.Pod, error) {
	data, err := p.Data(o)
	if err != nil {
		return nil, fmt.Errorf("reading a patch of pod %s: %w", was.Name, err)
	}
	raw, err := json.Marshal(was)
	if err != nil {
		return nil, fmt.Errorf("encoding pod %s: %w", was.Name, err)
	}
	switch p.Type() {
	case types.StrategicMergePatchType:
		raw, err = strategicpatch.StrategicMergePatch(raw, data, corev1.Pod{})
	case types.MergePatchType:
		raw, err = merge.MergePatch(raw, data)
	default:
		err = errors.New("it is of type " + string(p.Type()))
	}
	if err != nil {
		return nil, fmt.Errorf("applying a patch of pod %s: %w", was.Name, err)
	}
	now := &corev1.Pod{}
	if err := json.Unmarshal(raw, now); err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", was.Name, err)
	}
	return now, nil
}
