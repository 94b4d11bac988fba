// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a PodProbeMarker", func() {
	It("marks game servers by whether they have players, which a policy reads", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		if !shared.real {
			Skip("simulated nodes run no probes")
		}
		u.bundle("game-servers", example("game-servers"))
		u.apply(`
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: game}
spec:
  replicas: 2
  selector: {matchLabels: {app: game}}
  template:
    metadata: {labels: {app: game}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {name: server, image: "busybox:1.32", command: [sh, -c, "touch /tmp/idle; sleep 36000"]}
---
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: game}
spec:
  selector: {matchLabels: {app: game}}
  probes:
    - name: idle
      containerName: server
      probe: {exec: {command: [ls, /tmp/idle]}, periodSeconds: 1, timeoutSeconds: 10}
      podConditionType: game.example/Idle
      markerPolicy:
        - {state: Succeeded, labels: {game.example/players: "false"}}
        - {state: Failed, labels: {game.example/players: "true"}}
`)
		players := func(selector string) func() string {
			return func() string {
				return u.kubectl("get", "pods", "-l", selector, "-o", `jsonpath={.items[*].metadata.labels.game\.example/players}`)
			}
		}
		Eventually(players("app=game")).Should(Equal("false false"))
		Eventually(func() string {
			return u.kubectl("get", "podprobemarker", "game", "-o", "jsonpath={.status.matchedPods}")
		}).Should(Equal("2"))
		name := u.kubectl("get", "pods", "-l", "app=game", "-o", "jsonpath={.items[0].metadata.name}")
		condition := func() string {
			return u.kubectl("get", "pod", name, "-o", `jsonpath={.status.conditions[?(@.type=="game.example/Idle")].status}`)
		}
		Expect(condition()).To(Equal("True"))

		By("seeing players come")
		u.kubectl("exec", name, "--", "rm", "/tmp/idle")
		since := time.Now()
		Eventually(condition).WithPolling(50 * time.Millisecond).Should(Equal("False"))
		took := time.Since(since)
		AddReportEntry("until the condition was False, with a period of 1 s", took)
		Expect(took).To(BeNumerically("<", 10*time.Second))
		Expect(players("game.example/players=true")()).To(Equal("true"))
		Eventually(u.kubectl).WithArguments("get", "events", "--field-selector", "reason=KruiseProbeFailed").Should(ContainSubstring("game#idle"))

		By("keeping a server with players")
		refused := func() string {
			out, err := u.try("kubectl", "delete", "pod", name, "-n", u.namespace, "--dry-run=server")
			if err == nil {
				return "it went"
			}
			return out
		}
		Eventually(refused).Should(ContainSubstring("has players (label game.example/players=true), so it stays until they have left."))

		By("letting it go when they have left")
		u.kubectl("exec", name, "--", "touch", "/tmp/idle")
		Eventually(condition).Should(Equal("True"))
		u.kubectl("delete", "pod", name)

		By("ending the probes with the marker")
		u.kubectl("delete", "podprobemarker", "game")
		Expect(u.kubectl("get", "nodepodprobes", "-o", "jsonpath={.items[*].spec.podProbes[*].namespace}")).NotTo(ContainSubstring(u.namespace))
	}, SpecTimeout(8*time.Minute))
})
