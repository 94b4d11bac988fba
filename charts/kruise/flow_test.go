// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// classify checks which FlowSchema an API server takes for requests of the service accounts of a release.
func classify(t *testing.T, api client.Client, config *rest.Config) {
	t.Helper()
	for _, tc := range []struct{ account, path, want string }{
		{"kruise-system:kruise-manager", "/apis/coordination.k8s.io/v1/namespaces/kruise-system/leases/kruise-manager", "kruise-leader-election"},
		{"kruise-system:kruise-manager", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/kruise-manager", "kruise-manager"},
		{"kruise-system:kruise-manager", "/api/v1/pods", "kruise-manager"},
		{"kruise-system:kruise-manager", "/version", "kruise-manager"},
		{"kruise-system:kruise-daemon", "/apis/apps.kruise.io/v1alpha1/nodeimages", "kruise-daemon"},
		{"shop:kruise-manager", "/api/v1/pods", "service-accounts"},
	} {
		as := rest.CopyConfig(config)
		as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + tc.account, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
		transport, err := rest.HTTPClientFor(as)
		if err != nil {
			t.Fatal(err)
		}
		var schema flowcontrolv1.FlowSchema
		if err := api.Get(t.Context(), client.ObjectKey{Name: tc.want}, &schema); err != nil {
			t.Fatal(err)
		}
		got := ""
		// The API server takes up new schemas within a moment.
		err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+tc.path, nil)
			if err != nil {
				return false, err
			}
			response, err := transport.Do(request)
			if err != nil {
				return false, err
			}
			got = response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
			return got == string(schema.UID), response.Body.Close()
		})
		if err != nil {
			t.Errorf("%s of %s goes by the FlowSchema of UID %s, want %s (%s): %v", tc.path, tc.account, got, tc.want, schema.UID, err)
		}
		for _, condition := range schema.Status.Conditions {
			if condition.Type == flowcontrolv1.FlowSchemaConditionDangling && condition.Status == flowcontrolv1.ConditionTrue {
				t.Errorf("%s: %s", tc.want, condition.Message)
			}
		}
	}
}

// Each schema of the chart goes before Kubernetes' own of all service accounts, and that of the lease before that of the manager.
func TestFlowSchemas(t *testing.T) {
	r := render(t)
	lease, manager := get[*flowcontrolv1.FlowSchema](t, r, "kruise-leader-election").Spec, get[*flowcontrolv1.FlowSchema](t, r, "kruise-manager").Spec
	if lease.MatchingPrecedence >= manager.MatchingPrecedence || manager.MatchingPrecedence >= 900 {
		t.Errorf("the lease has %d, all else %d", lease.MatchingPrecedence, manager.MatchingPrecedence)
	}
	for _, schema := range all[*flowcontrolv1.FlowSchema](r) {
		if level := schema.Spec.PriorityLevelConfiguration.Name; level != "leader-election" && !has[*flowcontrolv1.PriorityLevelConfiguration](r, level) {
			t.Errorf("%s has the level %s, which is not there", schema.Name, level)
		}
	}
	if r := render(t, "--set", "featureGates=KruiseDaemon=false"); has[*flowcontrolv1.FlowSchema](r, "kruise-daemon") || has[*flowcontrolv1.PriorityLevelConfiguration](r, "kruise-daemon") {
		t.Error("there are some for agents that do not run")
	}
	if r := render(t, "--set", "flowControl.manager.priorityLevel=workload-high"); has[*flowcontrolv1.PriorityLevelConfiguration](r, "kruise-manager") {
		t.Error("a level is made that no request goes by")
	}
}

// Where replicas are scaled the chart says no number of them, and the budget holds for any number.
func TestAutoscaling(t *testing.T) {
	for _, args := range []string{"manager.autoscaling.enabled=true", "manager.autoscaling.enabled=true,manager.replicas=1,manager.autoscaling.minReplicas=1"} {
		r := render(t, "--set", args)
		if d := deployment(t, r); d.Spec.Replicas != nil {
			t.Errorf("%s: the Deployment has %d replicas", args, *d.Spec.Replicas)
		}
		budget := get[*policyv1.PodDisruptionBudget](t, r, "kruise-controller-manager").Spec
		if budget.MinAvailable != nil || budget.MaxUnavailable.IntValue() != 1 {
			t.Errorf("%s: the budget is %v", args, budget)
		}
	}
}
