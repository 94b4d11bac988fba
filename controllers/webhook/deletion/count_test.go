// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/regatta-sh/regatta/engine/decision/protection"
)

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for this: %s", what)
		}
	}
}

// says tries to delete an object, and looks for what is said.
func (c *cluster) says(t *testing.T, o client.Object, want string) {
	t.Helper()
	err := c.api.Delete(t.Context(), o, client.DryRunAll)
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func (c *cluster) namespaces(t *testing.T) {
	ns := c.object(t, "{apiVersion: v1, kind: Namespace}", "Cascading")
	name := ns.GetName()
	c.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
	ended, going, alive := aPod(name, "ended"), aPod(name, "going"), aPod(name, "alive")
	going.Finalizers = []string{"x.example/y"}
	claim := func(claimName string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: claimName}}
		p.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		p.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		c.create(t, p)
		p.Status.Phase = phase
		if err := c.api.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	c.create(t, ended, going, alive)
	ended.Status.Phase = corev1.PodSucceeded
	if err := c.api.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	if err := c.api.Delete(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	bound := claim("bound", corev1.ClaimBound)
	claim("pending", corev1.ClaimPending)
	c.says(t, ns, "active pods 1>0")
	if err := c.api.Delete(t.Context(), alive); err != nil {
		t.Fatal(err)
	}
	c.says(t, ns, `"Bound" status pvc 1>0`)
	if err := c.api.Delete(t.Context(), bound); err != nil { // it stays, as a finalizer protects it
		t.Fatal(err)
	}
	c.says(t, ns, "")
	for i := range page + 10 {
		c.create(t, aPod(name, fmt.Sprintf("many-%d", i)))
	}
	c.says(t, ns, fmt.Sprintf("active pods %d>0", page+10))
}

func (c *cluster) definitions(t *testing.T) {
	o := c.object(t, crd, "Cascading")
	thing := c.thing(t, o, "one")
	c.patch(t, thing, `{"metadata":{"finalizers":["x.example/y"]}}`)
	c.says(t, o, "active CRs 1>0")
	if err := c.api.Delete(t.Context(), thing); err != nil {
		t.Fatal(err)
	}
	c.says(t, o, "")

	c.thing(t, o, "two")
	user, err := c.env.AddUser(envtest.User{Name: "limited"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := c.handler.Metadata
	c.handler.Metadata = metadata.NewForConfigOrDie(user.Config())
	c.says(t, o, o.GetName()+", which it may if the chart's value installation.roleListGroups has x.example")
	ns := c.object(t, "{apiVersion: v1, kind: Namespace}", "Cascading")
	c.says(t, ns, "for list pods error: counting pods: pods is forbidden")
	c.handler.Metadata = all

	kinds := c.handler.Kinds
	c.handler.Kinds = without{kinds, protection.Gates{Deletion: true}}
	c.says(t, o, "feature-gate DeletionProtectionForCRDCascadingGate is not enabled")
	c.handler.Kinds = without{kinds, protection.Gates{}}
	c.says(t, o, "")
	c.handler.Kinds = kinds
}

// without has other gates.
type without struct {
	Kinds
	gates protection.Gates
}

func (w without) FeatureGates() protection.Gates { return w.gates }
