// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const removalName = "simulated-nodes-remove-terminating-pods"

// LimitRemoval has the API server refuse KWOK's deletes of pods of StatefulSets
// that are not terminating. A kubelet deletes the pod that has terminated by its
// UID. KWOK 0.8 deletes by name, and a second time where the pod changed while the
// first delete was under way. That second delete would take the next pod of the
// name, which a StatefulSet has created by then. Pods of other workloads have
// names that do not come again: a policy for them would only cost the API server time.
//
// The API server evaluates the policy on the pod that it is about to remove,
// so that no delete falls between the two.
func LimitRemoval(ctx context.Context, client kubernetes.Interface) error {
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: removalName},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: appsv1.StatefulSetPodNameLabel, Operator: metav1.LabelSelectorOpExists},
				}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Delete},
						Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
					},
				}},
			},
			MatchConditions: []admissionv1.MatchCondition{{Name: "by-kwok", Expression: fmt.Sprintf("request.userInfo.username == %q", Kwok)}},
			Validations: []admissionv1.Validation{{
				Expression: "has(oldObject.metadata.deletionTimestamp)",
				Message:    "the pod is not terminating: a simulated node removes only pods that are",
			}},
		},
	}
	policies := client.AdmissionregistrationV1()
	if _, err := policies.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the policy of removed pods: %w", err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: removalName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: removalName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("binding the policy of removed pods: %w", err)
	}
	return nil
}
