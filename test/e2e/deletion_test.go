// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const protect = "policy.kruise.io/delete-protection"

func (u *user) object(version, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetNamespace(u.namespace)
	o.SetName(name)
	return o
}

// workload is an object of any kind that has replicas and a template.
func workload(version, kind string) string {
	more := ""
	if kind == "UnitedDeployment" {
		return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: kept}
spec:
  replicas: 1
  selector: {matchLabels: {app: kept}}
  topology: {subsets: [{name: a}]}
  template:
    deploymentTemplate:
      metadata: {labels: {app: kept}}
      spec:
        template:
          metadata: {labels: {app: kept}}
          spec: {containers: [{name: nginx, image: "nginx:1.20"}]}
`, version, kind)
	}
	if kind == "StatefulSet" {
		more = "serviceName: kept"
	}
	return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: kept}
spec:
  replicas: 1
  %s
  selector: {matchLabels: {app: kept}}
  template:
    metadata: {labels: {app: kept}}
    spec: {containers: [{name: nginx, image: "nginx:1.20"}]}
`, version, kind, more)
}

var _ = Describe("deletion protection", func() {
	always := func(u *user, resource string) {
		GinkgoHelper()
		u.kubectl("label", resource, "kept", protect+"=Always")
		Expect(u.denied("delete", resource, "kept")).To(ContainSubstring("forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"))
		u.kubectl("label", resource, "kept", protect+"-")
	}
	DescribeTable("keeps workloads, always or while they have replicas",
		func(ctx SpecContext, version, kind, resource string) {
			u := newUser(ctx)
			u.apply(workload(version, kind))
			always(u, resource)
			u.kubectl("label", resource, "kept", protect+"=Cascading")
			Expect(u.denied("delete", resource, "kept")).To(ContainSubstring("forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and replicas 1>0"))
			u.kubectl("patch", resource, "kept", "--type=merge", "-p", `{"spec":{"replicas":0}}`)
			u.kubectl("delete", resource, "kept", "--wait=false")
		},
		Entry("Deployment", "apps/v1", "Deployment", "deployments.apps"),
		Entry("ReplicaSet", "apps/v1", "ReplicaSet", "replicasets.apps"),
		Entry("StatefulSet", "apps/v1", "StatefulSet", "statefulsets.apps"),
		Entry("CloneSet", "apps.kruise.io/v1beta1", "CloneSet", "clonesets.apps.kruise.io"),
		Entry("CloneSet v1alpha1", "apps.kruise.io/v1alpha1", "CloneSet", "clonesets.v1alpha1.apps.kruise.io"),
		Entry("Advanced StatefulSet", "apps.kruise.io/v1beta1", "StatefulSet", "statefulsets.apps.kruise.io"),
		Entry("UnitedDeployment", "apps.kruise.io/v1alpha1", "UnitedDeployment", "uniteddeployments.apps.kruise.io"),
	)

	DescribeTable("keeps what is reached through it",
		func(ctx SpecContext, resource, manifest string) {
			u := newUser(ctx)
			u.apply(manifest)
			always(u, resource)
			u.kubectl("label", resource, "kept", protect+"=Cascading") // means nothing here
			u.kubectl("delete", resource, "kept")
		},
		Entry("Service", "services", "{apiVersion: v1, kind: Service, metadata: {name: kept}, spec: {ports: [{port: 80}], selector: {app: kept}}}"),
		Entry("Ingress", "ingresses.networking.k8s.io", "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: kept}, spec: {defaultBackend: {service: {name: kept, port: {number: 80}}}}}"),
	)

	It("keeps a namespace, always or while there are pods in it", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		u.kubectl("label", "namespace", u.namespace, protect+"=Always")
		u.denied("delete", "namespace", u.namespace)
		u.kubectl("label", "namespace", u.namespace, "--overwrite", protect+"=Cascading")
		u.apply(deployment("web", 2))
		Eventually(func() int { return len(u.pods("web")) }).Should(Equal(2))
		Expect(u.denied("delete", "namespace", u.namespace)).To(ContainSubstring("=Cascading and active pods 2>0"))
		why := u.why("namespace/" + u.namespace)
		show("regatta why namespace/"+u.namespace, why)
		Expect(why).To(And(ContainSubstring("DELETE of Namespace "+u.namespace+" was REFUSED"), ContainSubstring("protection.deletion.pods")))
		u.kubectl("delete", "deployment", "web")
		Eventually(func() string {
			out, _ := u.try("kubectl", "delete", "namespace", u.namespace, "--dry-run=server")
			return out
		}).Should(ContainSubstring("deleted"))
		u.kubectl("label", "namespace", u.namespace, protect+"-")
	}, SpecTimeout(8*time.Minute))

	It("keeps a CRD, and says which gate counts its objects", func(ctx SpecContext) {
		u := newUser(ctx)
		group := strings.ReplaceAll(u.namespace, "-", "") + ".example.com"
		crd := "things." + group
		u.apply(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, crd, group))
		u.kubectl("label", "crd", crd, protect+"=Always")
		u.denied("delete", "crd", crd)
		u.kubectl("label", "crd", crd, "--overwrite", protect+"=Cascading")
		Expect(u.denied("delete", "crd", crd)).To(ContainSubstring("feature-gate DeletionProtectionForCRDCascadingGate is not enabled"))
		u.kubectl("label", "crd", crd, protect+"-")
		u.kubectl("delete", "crd", crd)
	}, SpecTimeout(5*time.Minute))

	// The API server refuses by its own policy. Once that policy was deleted and made again, as a
	// change over does, Kubernetes may no longer see that the manager is away; the webhook fails closed.
	It("survives the manager: the API server keeps what is labelled while none is there", Serial, func(ctx SpecContext) {
		if !shared.real {
			Skip("the manager runs on this machine, and its Deployment never has replicas")
		}
		u := newUser(ctx)
		u.apply(workload("apps/v1", "Deployment"))
		u.kubectl("label", "deployment", "kept", protect+"=Always")
		u.withoutManagers(func() {
			Eventually(func() string {
				out, err := u.try("kubectl", "-n", u.namespace, "delete", "deployment", "kept")
				Expect(err).To(HaveOccurred())
				return out
			}).Should(Or(
				ContainSubstring("forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"),
				ContainSubstring(`failed calling webhook "vdeletion-always.kb.io"`),
			))
			u.apply(workload("apps/v1", "ReplicaSet"))
			u.kubectl("delete", "replicaset", "kept", "--wait=false") // not labelled
		})
		u.kubectl("label", "deployment", "kept", protect+"-")
	}, SpecTimeout(10*time.Minute))
})

// withoutManagers does something while no manager runs, and waits until all run
// again.
func (u *user) withoutManagers(f func()) {
	GinkgoHelper()
	u.kubectl("-n", "kruise-system", "scale", "deployment", "kruise-controller-manager", "--replicas=0")
	Eventually(func() string {
		return u.kubectl("-n", "kruise-system", "get", "pods", "-l", "control-plane=controller-manager", "-o", "name")
	}).Should(BeEmpty())
	defer u.managersBack()
	f()
}

func (u *user) managersBack() {
	GinkgoHelper()
	u.kubectl("-n", "kruise-system", "scale", "deployment", "kruise-controller-manager", "--replicas=2")
	u.kubectl("-n", "kruise-system", "rollout", "status", "deployment/kruise-controller-manager", "--timeout=2m")
}
