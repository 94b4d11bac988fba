// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/regatta-sh/regatta/test/apiserver"
)

// The webhook of a replica that does not lead answers for SidecarSets too, and waits until the API
// server shows what it claims for them.
func TestAReplicaThatDoesNotLeadSeesTheConfigurations(t *testing.T) {
	env, api := apiServer.Serve(t)
	create(t, api, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "taken"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: &metav1.MicroTime{Time: time.Now()},
	}})
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: api.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "taken", LeaderElectionNamespace: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	own, err := newNamedCache(mgr, ConfigurationName, &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{})
	if err != nil {
		t.Fatal(err)
	}
	apiserver.Run(t, mgr)
	m := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}}
	create(t, api, m)
	eventually(t, "the configuration is seen", func() bool {
		err := own.Get(t.Context(), client.ObjectKeyFromObject(m), m)
		if client.IgnoreNotFound(err) != nil {
			t.Logf("reading it: %v", err)
		}
		return err == nil
	})
	select {
	case <-mgr.Elected():
		t.Error("the replica leads")
	default:
	}
}
