// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the SidecarTerminator", func() {
	DescribeTable("ends a Job when its main container has ended", func(ctx SpecContext, env, command string) {
		u := newUser(ctx)
		if !shared.real {
			Skip("simulated nodes have no container runtime")
		}
		u.apply(fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {app: report}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 2
      containers:
        - {name: main, image: "busybox:1.32", command: [sleep, "1"]}
        - name: proxy
          image: "busybox:1.32"
          command: [sh, -c, %q]
          env: [{name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT, value: "true"}%s]
`, command, env))
		complete := func() string {
			return u.kubectl("get", "job", "report", "-o", `jsonpath={.status.conditions[?(@.type=="Complete")].status}`)
		}
		Eventually(complete).Should(Equal("True"))
		Eventually(u.kubectl).WithArguments("get", "events", "--field-selector", "reason=SidecarTerminator").Should(ContainSubstring("Kruise SidecarTerminator is trying to terminate sidecar [proxy] using crr"))
		Eventually(func() string { return u.kubectl("get", "crr", "-o", "jsonpath={.items[*].status.phase}") }).Should(Equal("Completed"))
	},
		Entry("with a sidecar that ends by itself when it gets the signal", "", "trap 'exit 0' TERM; while true; do sleep 1; done", SpecTimeout(6*time.Minute)),
		Entry("whatever a sidecar exits with whose exit code is ignored", `, {name: KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE, value: "true"}`, "trap 'exit 7' TERM; while true; do sleep 1; done", SpecTimeout(6*time.Minute)),
	)

	// The first signal ends the sidecar with an error, so that the kubelet starts it again.
	It("asks again where a sidecar runs on after the first request", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		if !shared.real {
			Skip("simulated nodes have no container runtime")
		}
		u.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  template:
    spec:
      restartPolicy: OnFailure
      terminationGracePeriodSeconds: 2
      volumes: [{name: state, emptyDir: {}}]
      containers:
        - {name: main, image: "busybox:1.32", command: [sleep, "1"]}
        - name: proxy
          image: "busybox:1.32"
          command: [sh, -c, "if [ -f /state/asked ]; then trap 'exit 0' TERM; else trap 'touch /state/asked; exit 1' TERM; fi; while true; do sleep 1; done"]
          volumeMounts: [{name: state, mountPath: /state}]
          env: [{name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT, value: "true"}]
`)
		Eventually(func() string {
			return u.kubectl("get", "job", "report", "-o", `jsonpath={.status.conditions[?(@.type=="Complete")].status}`)
		}).Should(Equal("True"))
		Expect(u.kubectl("get", "pods", "-o", `jsonpath={.items[*].status.containerStatuses[?(@.name=="proxy")].restartCount}`)).To(Equal("1"))
	}, SpecTimeout(6*time.Minute))
})
