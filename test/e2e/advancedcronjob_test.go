// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("an AdvancedCronJob", func() {
	It("starts a BroadcastJob every minute, as the tutorial has it", func(ctx SpecContext) {
		if !shared.real {
			Skip("simulated nodes do not end their pods")
		}
		u := newUser(ctx)
		u.apply(`
apiVersion: apps.kruise.io/v1alpha1
kind: AdvancedCronJob
metadata:
  name: acj-test
spec:
  schedule: '*/1 * * * *'
  template:
    broadcastJobTemplate:
      spec:
        completionPolicy:
          type: Always
          ttlSecondsAfterFinished: 30
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
		Eventually(func() string { return u.kubectl("get", "acj") }).Should(
			MatchRegexp(`^NAME +SCHEDULE +TYPE +LASTSCHEDULETIME +AGE\nacj-test +\*/1 \* \* \* \* +BroadcastJob +\S*`))
		Eventually(func() string { return u.kubectl("get", "bcj", "--no-headers", "--ignore-not-found") }).Should(
			MatchRegexp(`^acj-test-\d+ +(\d+) +0 +\d+ +0 +\S+`))
		child := strings.Fields(u.kubectl("get", "bcj", "--no-headers"))[0]
		due := u.kubectl("get", "bcj", child, "-o", `jsonpath={.metadata.annotations.apps\.kruise\.io/scheduled-at}`)
		at, err := time.Parse(time.RFC3339, due)
		Expect(err).NotTo(HaveOccurred())
		Expect(at.Second()).To(BeZero())
		Expect(child).To(Equal(fmt.Sprint("acj-test-", at.Unix())))
		last, err := time.Parse(time.RFC3339, u.kubectl("get", "acj", "acj-test", "-o", "jsonpath={.status.lastScheduleTime}"))
		Expect(err).NotTo(HaveOccurred())
		Expect(last).To(BeTemporally(">=", at))
		for _, line := range strings.Split(strings.TrimSpace(u.kubectl("get", "pods", "-l", "broadcastjob-name="+child, "--no-headers")), "\n") {
			Expect(line).To(MatchRegexp(`^` + child + `-[a-z0-9]{5} +0/1 +Completed `))
		}
		Expect(u.kubectl("get", "events", "--field-selector", "involvedObject.kind=AdvancedCronJob", "-o", "jsonpath={.items[*].message}")).To(ContainSubstring("Created job " + child))
	}, SpecTimeout(4*time.Minute))

	It("starts Jobs, replaces them, and starts none while it is paused", func(ctx SpecContext) {
		if !shared.real {
			Skip("no controller of Jobs runs")
		}
		u := newUser(ctx)
		u.apply(`{apiVersion: apps.kruise.io/v1beta1, kind: AdvancedCronJob, metadata: {name: often}, spec: {schedule: "@every 5s", concurrencyPolicy: Replace,
			template: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: busybox, command: [sleep, "3600"]}]}}}}}}}`)
		jobs := func() string { return u.kubectl("get", "jobs", "-o", "name") }
		Eventually(jobs).Should(MatchRegexp(`^job.batch/often-\d+\n?$`))
		first := jobs()
		Eventually(jobs).Should(SatisfyAll(MatchRegexp(`^job.batch/often-\d+\n?$`), Not(Equal(first))))
		u.kubectl("patch", "acj", "often", "--type=merge", "-p", `{"spec": {"paused": true}}`)
		Eventually(func() bool { a := jobs(); time.Sleep(8 * time.Second); return a == jobs() }).Should(BeTrue())
	}, SpecTimeout(4*time.Minute))
})
