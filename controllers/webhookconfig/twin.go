// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// absent is the API server's message while no manager can explain the refusal. It starts like the
// webhook's message.
const absent = "forbidden by ResourcesProtectionDeletion for " + policyv1alpha1.DeletionProtectionKey + "=" + policyv1alpha1.DeletionProtectionAlways +
	". The API server refuses this by itself, as it sees no manager of Regatta that is ready. To delete the object, first take the label " + policyv1alpha1.DeletionProtectionKey + " off it."

// fallbackPolicy is a ValidatingAdmissionPolicy that refuses the deletion of objects that must never
// be deleted while no replica of the manager is ready. While one is ready, the webhook answers, which
// has exceptions and records. There is no policy if the manager runs outside the cluster, since no
// Deployment shows its state then.
//
// The webhook of these objects fails closed itself; the policy only adds a message that says what to
// do. So if the API server does not find the Deployment, the request goes to the webhook. Kubernetes
// 1.37 stops watching Deployments for parameters when the last policy that reads them is deleted, and
// never starts again: from then on it uses an outdated Deployment until the API server is restarted.
func (f renderFacts) fallbackPolicy() (*admissionv1.ValidatingAdmissionPolicySpec, *admissionv1.ValidatingAdmissionPolicyBindingSpec) {
	if len(f.kinds) == 0 || !f.call.isInCluster() {
		return nil, nil
	}
	var rules []admissionv1.NamedRuleWithOperations
	for _, k := range f.kinds {
		rules = append(rules, admissionv1.NamedRuleWithOperations{RuleWithOperations: newRule(k.Group, k.Resource, admissionv1.Delete)})
	}
	return &admissionv1.ValidatingAdmissionPolicySpec{
			ParamKind:     &admissionv1.ParamKind{APIVersion: "apps/v1", Kind: "Deployment"},
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: f.selectAllNamespaces(), ObjectSelector: protectionSelector(policyv1alpha1.DeletionProtectionAlways),
				ResourceRules: rules, MatchPolicy: ptr.To(admissionv1.Equivalent),
			},
			MatchConditions: []admissionv1.MatchCondition{{Name: "not-being-deleted", Expression: alive}},
			Validations: []admissionv1.Validation{{
				Expression: "params.?status.?readyReplicas.orValue(0) > 0", Message: absent, Reason: ptr.To(metav1.StatusReasonForbidden),
			}},
		}, &admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: PolicyName,
			ParamRef: &admissionv1.ParamRef{
				Name: DeploymentName, Namespace: f.Namespace, ParameterNotFoundAction: ptr.To(admissionv1.AllowAction),
			},
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}
}
