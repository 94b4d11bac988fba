// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/test/cluster/simulated"
)

const placementName = "system-pods-on-real-nodes"

// keepSystemReal makes the pods of namespaces called *-system ask for a real
// node, in a cluster that has both kinds: a manager on a simulated node is said
// to run, and serves no webhook. Pods of daemon sets are left alone, for they
// are meant for the node that they are on.
func (c *Cluster) keepSystemReal(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	ignore := admissionv1.Ignore
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: placementName},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      &ignore,
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create},
						Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
					},
				}},
			},
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "system-namespace", Expression: `request.namespace.endsWith("-system")`},
				{Name: "not-of-a-daemon-set", Expression: `!object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == "DaemonSet")`},
				{Name: "not-chosen-already", Expression: fmt.Sprintf(`!(%q in object.spec.?nodeSelector.orValue({}))`, simulated.NodeLabel)},
			},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: fmt.Sprintf(
					`has(object.spec.nodeSelector)
  ? [JSONPatch{op: "add", path: "/spec/nodeSelector/" + jsonpatch.escapeKey(%[1]q), value: %[2]q}]
  : [JSONPatch{op: "add", path: "/spec/nodeSelector", value: {%[1]q: %[2]q}}]`, simulated.NodeLabel, simulated.KindReal)},
			}},
		},
	}
	_, err = client.AdmissionregistrationV1().MutatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the placement policy: %w", err)
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: placementName},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: placementName},
	}
	_, err = client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("binding the placement policy: %w", err)
	}
	return nil
}
