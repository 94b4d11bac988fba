// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a CloneSet whose pods are ready for less than minReadySeconds", func() {
	It("is scaled in by pods that are named, by number and to nothing", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(`
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: young}
spec:
  replicas: 4
  minReadySeconds: 3600
  selector: {matchLabels: {app: young}}
  template:
    metadata: {labels: {app: young}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: nginx, image: "nginx:1.24"}]
`)
		status := func() string {
			return u.kubectl("get", "clone", "young", "-o", "jsonpath={.status.replicas} {.status.readyReplicas} {.status.availableReplicas}")
		}
		Eventually(status).Should(Equal("4 4 0"))

		named := u.names("young")[2]
		u.kubectl("patch", "clone", "young", "--type=merge", "-p", fmt.Sprintf(`{"spec": {"replicas": 3, "scaleStrategy": {"podsToDelete": [%q]}}}`, named))
		Eventually(u.names).WithArguments("young").Should(And(HaveLen(3), Not(ContainElement(named))))
		u.kubectl("scale", "clone", "young", "--replicas=1")
		Eventually(u.names).WithArguments("young").Should(HaveLen(1))
		u.kubectl("scale", "clone", "young", "--replicas=0")
		Eventually(u.names).WithArguments("young").Should(BeEmpty())
		Eventually(status).Should(Equal("0 0 0"))
	}, SpecTimeout(6*time.Minute))
})
