// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/regatta-sh/regatta/test/cluster/audit"
)

var _ = Describe("an in-place update", func() {
	It("to a tag with the same digest completes", func(ctx SpecContext) {
		// OpenKruise waits for ever here without its node agent: neither the
		// image's ID nor its name in the status ever changes.
		u := newUser(ctx)
		u.apply(web("twin", 2, "twin:same-digest-a"))
		Eventually(u.status).WithArguments("twin").Should(Equal(settled(2)))
		before := u.pods("twin")
		u.apply(web("twin", 2, "twin:same-digest-b"))
		Eventually(u.status).WithArguments("twin").Should(Equal(settled(2)))
		for name, pod := range u.pods("twin") {
			Expect(pod.UID).To(Equal(before[name].UID))
			Expect(restarts(pod)).To(Equal(restarts(before[name]) + 1))
		}
	}, SpecTimeout(10*time.Minute))

	It("costs three writes a pod, one of labels alone costs one", func(ctx SpecContext) {
		if shared.auditLog == "" {
			Skip("the audit log of this cluster cannot be read")
		}
		u := newUser(ctx)
		u.apply(web("cheap", 4, "nginx:1.20"))
		Eventually(u.status).WithArguments("cheap").Should(Equal(settled(4)))
		// cost are the writes to pods that the API server accepted and stored, and what
		// it was asked by dry runs. It refuses a write now and then because the kubelet
		// wrote first, and that is not ours.
		cost := func(manifest string) (writes, asked int) {
			GinkgoHelper()
			since := time.Now()
			u.apply(manifest)
			Eventually(u.status).WithArguments("cheap").Should(Equal(settled(4)))
			counts, err := audit.Counts(shared.auditLog, audit.Filter{User: shared.installed.User, Namespace: u.namespace, Resource: "pods", Since: since})
			Expect(err).NotTo(HaveOccurred())
			for _, c := range counts {
				asked += c.DryRuns
			}
			return audit.Total(counts) - audit.Failed(counts) - asked, asked
		}
		writes, asked := cost(web("cheap", 4, "nginx:1.21"))
		Expect(writes).To(Equal(3 * 4))
		Expect(asked).To(BeElementOf(1, 2), "the first pod is asked about, and once more if it changed meanwhile")
		writes, asked = cost(strings.Replace(web("cheap", 4, "nginx:1.21"), "metadata: {labels: {app: cheap}}", "metadata: {labels: {app: cheap, wave: two}}", 1))
		Expect(writes).To(Equal(1 * 4))
		Expect(asked).To(BeZero(), "it takes no pod out of its services")
	}, SpecTimeout(10*time.Minute))

	It("of labels alone restarts nothing and takes no pod out of its services", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("tags", 2, "nginx:1.20"))
		Eventually(u.status).WithArguments("tags").Should(Equal(settled(2)))
		before := u.pods("tags")
		u.apply(strings.Replace(web("tags", 2, "nginx:1.20"), "metadata: {labels: {app: tags}}", "metadata: {labels: {app: tags, wave: two}}", 1))
		Eventually(u.status).WithArguments("tags").Should(Equal(settled(2)))
		for name, pod := range u.pods("tags") {
			Expect(pod.UID).To(Equal(before[name].UID))
			Expect(pod.Labels).To(HaveKeyWithValue("wave", "two"))
			Expect(restarts(pod)).To(Equal(restarts(before[name])))
		}
	}, SpecTimeout(10*time.Minute))

	It("that is not possible recreates pods and their claims", func(ctx SpecContext) {
		u := newUser(ctx)
		claims := `
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`
		manifest := func(env string) string {
			return web("disk", 2, "nginx:1.20", "        env: [{name: A, value: "+env+"}]", "        volumeMounts: [{name: data, mountPath: /data}]", claims)
		}
		// web puts the container on one line; this one needs more.
		expand := func(s string) string {
			return strings.Replace(s, "- {name: nginx, image: nginx:1.20}", "- name: nginx\n        image: nginx:1.20", 1)
		}
		u.apply(expand(manifest("one")))
		Eventually(u.status).WithArguments("disk").Should(Equal(settled(2)))
		before := u.pods("disk")
		old := u.kubectl("get", "pvc", "-o", "name")
		Expect(strings.Fields(old)).To(HaveLen(2))
		u.apply(expand(manifest("two")))
		Eventually(u.status).WithArguments("disk").WithTimeout(4 * time.Minute).Should(Equal(settled(2)))
		for name := range u.pods("disk") {
			Expect(before).NotTo(HaveKey(name))
		}
		Eventually(func() []string { return strings.Fields(u.kubectl("get", "pvc", "-o", "name")) }).Should(HaveLen(2))
		for _, claim := range strings.Fields(u.kubectl("get", "pvc", "-o", "name")) {
			Expect(old).NotTo(ContainSubstring(claim))
		}
	}, SpecTimeout(8*time.Minute))
})
