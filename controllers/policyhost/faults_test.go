// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"bytes"
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/controllers/policyhost/hosttest"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// publishRevision is what a leader does: it keeps an archive, and names it in the status of a bundle.
func publishRevision(c *faultinjection.Cluster, b *policy.ClusterPolicyBundle, files map[string]string) {
	made, err := bundle.FromFiles(b.Name, files)
	c.Must(err)
	var archive bytes.Buffer
	c.Must(made.BuildArchive(&archive, bundle.Build{}))
	kept, err := bundlerevision.Store{Client: c.Client, Reader: c.Client, Namespace: "kruise-system"}.SaveArchive(c.Context(), b, archive.Bytes(), "files")
	c.Must(err)
	before := b.DeepCopy()
	b.Status.ObservedGeneration = b.Generation
	b.Status.Active = &policy.PolicyArtifact{
		Revision: bundle.ShortRevision(made.Revision), Content: made.Revision, Digest: bundlerevision.ArchiveDigest(archive.Bytes()),
		Reference: "files", KeptIn: kept, Generation: b.Generation, Time: metav1.NewTime(c.Now),
	}
	c.PatchStatus(b, before)
}

// newFaultScenario is a bundle of which a leader publishes a revision, and another one once the first decides. The end state has what decides.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	key := Key{Name: "rules"}
	b := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: key.Name, UID: "b", Generation: 1}}
	memory := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "memory"}}
	builtin := hosttest.BuiltinPolicies(t)
	var host *Host
	return faultinjection.Scenario{
		OnlyReads: true,
		Objects:   []client.Object{b, memory},
		New: func(t testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			var err error
			host, err = New(&rest.Config{}, "kruise-system", "node-a", WithClient(e.Client), WithBuiltin(builtin), WithEngine(engine.WithPatience(20), engine.WithShare(1000), hosttest.WithCompiled(t)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(host.Close)
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				return host.reconcileBundle(ctx, e.Client, req.NamespacedName)
			})
		},
		Requests: faultinjection.RequestFor(b),
		Watches:  map[string]faultinjection.Changes{"ControllerRevision": faultinjection.NoChanges, "ConfigMap": faultinjection.NoChanges},
		Others: func(c *faultinjection.Cluster) {
			found := &policy.ClusterPolicyBundle{}
			c.Must(c.Client.Get(c.Context(), key, found))
			decides := hosttest.HoldReasons(host.Engine(), "shop")
			kept := &appsv1.ControllerRevisionList{}
			c.Must(c.Client.List(c.Context(), kept))
			switch {
			case len(kept.Items) == 0:
				publishRevision(c, found, hosttest.HoldFiles("a", "First", "true"))
			case len(kept.Items) == 1 && decides == "First":
				publishRevision(c, found, hosttest.HoldFiles("a", "Second", "true"))
			}
			memory := memory.DeepCopy()
			memory.Data = map[string]string{"decides": decides}
			c.Must(c.Client.Update(c.Context(), memory))
		},
		Quiet: 6 * time.Minute, // it looks again all the time
	}
}

func TestNoFailedCallLeavesAnOldRevisionToDecide(t *testing.T) {
	newFaultScenario(t).Run(t)
}
