// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("an enhanced liveness probe", func() {
	It("that fails everywhere restarts a Deployment within its budget", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		if !shared.real {
			Skip("simulated nodes run no probes")
		}
		u.apply(`
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  maxUnavailable: 1
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {apps.kruise.io/using-enhanced-liveness: "true"}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: web
          image: "busybox:1.32"
          command: [sh, -c, "touch /tmp/well; sleep 5; touch /tmp/ready; sleep 36000"]
          readinessProbe: {exec: {command: [ls, /tmp/ready]}, periodSeconds: 1, timeoutSeconds: 10}
          livenessProbe: {exec: {command: [ls, /tmp/well]}, periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 2}
`)
		pods := func(path string) string {
			return u.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*]"+path+"}")
		}
		Eventually(func() string { return pods(".status.containerStatuses[0].ready") }).Should(Equal("true true true"))
		Expect(pods(".spec.containers[0].livenessProbe")).To(BeEmpty(), "the kubelet runs it as well")
		Eventually(func() string {
			return u.kubectl("get", "pub", "web", "-o", "jsonpath={.status.currentAvailable} {.status.unavailableAllowed}")
		}).Should(Equal("3 1"))
		Eventually(func() int {
			return strings.Count(u.kubectl("get", "nodepodprobes", "-o", "jsonpath={.items[*].status.podProbeStatuses[*]}"), `"namespace":"`+u.namespace+`"`)
		}).Should(Equal(3))

		By("having all of them fail at once")
		for _, name := range strings.Fields(pods(".metadata.name")) {
			u.kubectl("exec", name, "--", "rm", "/tmp/well")
		}
		Eventually(func() string {
			return u.kubectl("get", "crr", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="RestartHeld")].message}`)
		}).Should(ContainSubstring("PodUnavailableBudget "+u.namespace+"/web"), "no restart waits for the budget")
		ready := func() int { return strings.Count(pods(".status.containerStatuses[0].ready"), "true") }
		least := 3
		Eventually(func() string {
			least = min(least, ready())
			return pods(".status.containerStatuses[0].restartCount")
		}).Should(MatchRegexp(`^[1-9]\d* [1-9]\d* [1-9]\d*$`)) // on a slow machine one may fail once more before it is well
		Expect(least).To(BeNumerically(">=", 2), "more pods than the budget allows were restarted at once")
		Eventually(ready).Should(Equal(3))
		Eventually(u.kubectl).WithArguments("get", "events", "--field-selector", "reason=Unhealthy").Should(ContainSubstring("is restarted by ContainerRecreateRequest web-"))
	}, SpecTimeout(6*time.Minute))
})
