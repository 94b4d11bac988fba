// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// errNotPods reports a review that no API server sends to these paths.
var errNotPods = errors.New("the request is not about pods")

func aboutPods(req *admission.Request) bool {
	return req.Resource.Group == "" && req.Resource.Resource == "pods"
}

// confirmLivePod replaces the pod that the request carries by the pod that the API server has, and is false if the two are not the
// same pod in the same state of its metadata. Any client that reaches the webhook can post a review, so a request that the live
// pod does not confirm must not count.
//
// Such a request may be allowed without a decision: the API server writes only if the pod has not changed since the review,
// and if it has changed, the API server posts another review, of the pod as it is then.
func (r *Request) confirmLivePod(ctx context.Context, pods client.Reader, req *admission.Request) (bool, error) {
	live := &corev1.Pod{}
	err := pods.Get(ctx, client.ObjectKeyFromObject(r.Stored), live)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the pod past the cache: %w", err)
	}
	if !isForPod(req, live) || !sameMetadata(live, r.Stored) || req.Operation == admissionv1.Update && !samePod(live, r.New) {
		return false, nil
	}
	r.Stored = live
	r.Asked.SetObject(live, corev1.SchemeGroupVersion.WithKind("Pod"))
	return true, nil
}

// isForPod reports whether the request is for a pod of that name. The API server may leave the name empty.
func isForPod(req *admission.Request, pod *corev1.Pod) bool {
	return req.Namespace == pod.Namespace && (req.Name == "" || req.Name == pod.Name)
}

// sameMetadata compares what identifies a pod, what selectors and budgets find it by, and whether it is being deleted.
func sameMetadata(a, b *corev1.Pod) bool {
	return a.UID == b.UID && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero()
}

// samePod reports whether after is a later state of a pod. An update cannot change what this compares.
func samePod(pod, after *corev1.Pod) bool {
	return pod.Namespace == after.Namespace && pod.Name == after.Name && (after.UID == "" || pod.UID == after.UID)
}
