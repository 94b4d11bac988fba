// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// Pods outlive their workload when it is deleted with --cascade=orphan, such as to change a field
// that is immutable. The workload that is made next under its name takes them over.
var _ = Describe("pods whose workload was deleted without them", func() {
	// uids are the pods of the app, each by its name.
	uids := func(u *user) map[string]types.UID {
		GinkgoHelper()
		out := map[string]types.UID{}
		for name, pod := range u.pods("orphan") {
			out[name] = pod.UID
		}
		return out
	}
	// owners are the names and UIDs of the controllers of all pods, each once.
	owners := func(u *user) map[string]types.UID {
		GinkgoHelper()
		out := map[string]types.UID{}
		for name, pod := range u.pods("orphan") {
			owner := types.UID("")
			for _, reference := range pod.OwnerReferences {
				owner = reference.UID
			}
			out[name] = owner
		}
		return out
	}
	// allOwnedBy is what owners returns once the object is the controller of the pods.
	allOwnedBy := func(u *user, pods map[string]types.UID, resource, name string) map[string]types.UID {
		GinkgoHelper()
		uid := types.UID(u.kubectl("get", resource, name, "-o", "jsonpath={.metadata.uid}"))
		out := map[string]types.UID{}
		for pod := range pods {
			out[pod] = uid
		}
		return out
	}

	It("belong to the StatefulSet that is applied again, and a pod that is labelled back comes back", func(ctx SpecContext) {
		u := newUser(ctx)
		const manifest = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: orphan}}
  template:
    metadata: {labels: {app: orphan}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: nginx, image: "nginx:%s"}]
`
		status := func() string {
			return u.kubectl("get", "asts", "db", "-o", "jsonpath={.status.replicas} {.status.readyReplicas} {.status.updatedReplicas}")
		}
		u.apply(fmt.Sprintf(manifest, "1.24"))
		Eventually(status).Should(Equal("2 2 2"))
		before := uids(u)

		u.kubectl("delete", "asts", "db", "--cascade=orphan")
		u.apply(fmt.Sprintf(manifest, "1.24"))
		Eventually(status).Should(Equal("2 2 2"))
		Expect(uids(u)).To(Equal(before), "pods were made anew")
		Expect(owners(u)).To(Equal(allOwnedBy(u, before, "asts", "db")))
		Expect(u.kubectl("get", "controllerrevisions", "--no-headers", "-o", "name")).NotTo(ContainSubstring("\n"), "the template has one revision")

		By("taking the label from db-1 and giving it back")
		u.kubectl("label", "pod", "db-1", "app=mended", "--overwrite")
		Eventually(func() string { return u.kubectl("get", "pod", "db-1", "-o", "jsonpath={.metadata.ownerReferences}") }).Should(BeEmpty())
		u.kubectl("label", "pod", "db-1", "app=orphan", "--overwrite")
		Eventually(owners).WithArguments(u).Should(Equal(allOwnedBy(u, before, "asts", "db")))
		Eventually(status).Should(Equal("2 2 2"))
		Expect(uids(u)).To(Equal(before))

		By("updating what it took over")
		u.apply(fmt.Sprintf(manifest, "1.25"))
		Eventually(status).Should(Equal("2 2 2"))
		Eventually(func() string { return u.kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}") }).Should(Equal("nginx:1.25 nginx:1.25"))
	}, SpecTimeout(8*time.Minute))

	It("belong to the DaemonSet that is applied again, and no node has two", func(ctx SpecContext) {
		u := newUser(ctx)
		const manifest = `
apiVersion: apps.kruise.io/v1beta1
kind: DaemonSet
metadata: {name: logs}
spec:
  selector: {matchLabels: {app: orphan}}
  template:
    metadata: {labels: {app: orphan}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: nginx, image: "nginx:1.24"}]
`
		u.apply(manifest)
		// isSettled says whether each node has a pod that is ready, in the status of the newest generation.
		isSettled := func() bool {
			var desired, current, ready, updated, observed, generation int
			_, err := fmt.Sscan(u.kubectl("get", "daemon", "logs", "-o", "jsonpath={.status.desiredNumberScheduled} {.status.currentNumberScheduled} {.status.numberReady} {.status.updatedNumberScheduled} {.status.observedGeneration} {.metadata.generation}"),
				&desired, &current, &ready, &updated, &observed, &generation)
			return err == nil && desired > 1 && current == desired && ready == desired && updated == desired && observed == generation
		}
		Eventually(isSettled).Should(BeTrue())
		before := uids(u)

		u.kubectl("delete", "daemon", "logs", "--cascade=orphan")
		u.apply(manifest)
		Eventually(isSettled).Should(BeTrue())
		Eventually(owners).WithArguments(u).Should(Equal(allOwnedBy(u, before, "daemon", "logs")))
		Consistently(uids).WithArguments(u).WithTimeout(3*time.Second).Should(Equal(before), "nodes have two pods, or others")
	}, SpecTimeout(6*time.Minute))
})
