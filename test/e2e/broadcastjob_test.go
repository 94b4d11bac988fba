// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("a BroadcastJob", func() {
	// nodes are how many nodes a pod without tolerations may run on.
	nodes := func(u *user) int {
		GinkgoHelper()
		list := &corev1.NodeList{}
		Expect(shared.k8s.List(u.ctx, list)).To(Succeed())
		n := 0
		for _, node := range list.Items {
			if len(node.Spec.Taints) == 0 && !node.Spec.Unschedulable {
				n++
			}
		}
		return n
	}
	start := func(u *user) int {
		GinkgoHelper()
		if !shared.real {
			Skip("simulated nodes do not end their pods")
		}
		n := nodes(u)
		Expect(n).To(BeNumerically(">", 1))
		return n
	}

	It("runs a pod to its end on every node, as the tutorial has it", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		n := start(u)
		u.apply(`
apiVersion: apps.kruise.io/v1alpha1
kind: BroadcastJob
metadata:
  name: bcj-demo
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: counter
          image: busybox
          command:
            - '/bin/sh'
            - '-c'
            - 'for i in 9 8 7 6 5 4 3 2 1; do echo $i; done'
`)
		Eventually(func() string { return u.kubectl("get", "bcj", "bcj-demo") }).Should(
			MatchRegexp(`^NAME +DESIRED +ACTIVE +SUCCEEDED +FAILED +AGE\nbcj-demo +%d +0 +%d +0 +\S+`, n, n))
		pods := strings.Split(strings.TrimSpace(u.kubectl("get", "pods", "-l", "broadcastjob-name=bcj-demo", "--no-headers", "-o", "wide")), "\n")
		on := map[string]bool{}
		for _, line := range pods {
			Expect(line).To(MatchRegexp(`^bcj-demo-[a-z0-9]{5} +0/1 +Completed +0 `))
			on[strings.Fields(line)[6]] = true
		}
		Expect(pods).To(HaveLen(n))
		Expect(on).To(HaveLen(n))
		Expect(u.kubectl("get", "bcj", "bcj-demo", "-o", "jsonpath={.status.phase} {.status.conditions[*].type}")).To(Equal("completed Complete Ready"))
		Eventually(u.kubectl).WithArguments("get", "events", "--field-selector", "reason=JobComplete", "-o", "jsonpath={.items[*].message}").Should(
			Equal(fmt.Sprintf("Job %s/bcj-demo is completed, %d pods succeeded, 0 pods failed", u.namespace, n)))

		u.kubectl("patch", "bcj", "bcj-demo", "--type=merge", "-p", `{"spec": {"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 1}}}`)
		Eventually(func() string { return u.kubectl("get", "bcj,pods", "--ignore-not-found") }).Should(BeEmpty())
	}, SpecTimeout(6*time.Minute))

	It("fails at its deadline", func(ctx SpecContext) {
		u := newUser(ctx)
		n := start(u)
		u.apply(`{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob, metadata: {name: late}, spec: {completionPolicy: {type: Always, activeDeadlineSeconds: 5},
			template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: busybox, command: [sleep, "3600"]}]}}}}`)
		Eventually(func() string { return u.kubectl("get", "bcj", "late", "--no-headers") }).Should(MatchRegexp(`^late +%d +0 +0 +%d `, n, n))
		Expect(u.kubectl("get", "bcj", "late", "-o", "jsonpath={.status.phase} {.status.conditions[0].message}")).To(
			Equal(fmt.Sprintf("failed Job %s/late was active longer than specified deadline", u.namespace)))
		Eventually(func() string { return u.kubectl("get", "pods", "-o", "name") }).Should(BeEmpty())
	}, SpecTimeout(6*time.Minute))

	// A cordon keeps new pods off a node. The pod that runs there does its work, and once only.
	It("lets the pod of a node end that is cordoned meanwhile", Serial, func(ctx SpecContext) {
		u := newUser(ctx)
		n := start(u)
		u.apply(`{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob, metadata: {name: drained}, spec: {completionPolicy: {type: Always},
			template: {metadata: {labels: {app: drained}}, spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: [sleep, "15"]}]}}}}`)
		status := func() string {
			return u.kubectl("get", "bcj", "drained", "-o", "jsonpath={.status.phase} {.status.active} {.status.succeeded} {.status.failed}")
		}
		Eventually(status).Should(Equal(fmt.Sprintf("running %d 0 0", n)))
		before := u.names("drained")
		uncordon := cordon(u, []string{u.pods("drained")[before[0]].Spec.NodeName})
		Eventually(status).Should(Equal(fmt.Sprintf("completed 0 %d 0", n)))
		uncordon()
		Expect(u.names("drained")).To(Equal(before), "the work was done twice, or not at all")
		Consistently(status).WithTimeout(2*time.Second).Should(Equal(fmt.Sprintf("completed 0 %d 0", n)), "it began again when the node was back")
	}, SpecTimeout(5*time.Minute))
})
