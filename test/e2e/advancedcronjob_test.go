// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

var _ = Describe("an AdvancedCronJob", func() {
	It("starts a BroadcastJob every minute, as the tutorial has it", Label("smoke"), func(ctx SpecContext) {
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
		Eventually(u.kubectl).WithArguments("get", "events", "--field-selector", "involvedObject.kind=AdvancedCronJob", "-o", "jsonpath={.items[*].message}").Should(ContainSubstring("Created job " + child))
	}, SpecTimeout(8*time.Minute))

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
	}, SpecTimeout(8*time.Minute))

	It("runs late where a calendar held it, and says why until then", func(ctx SpecContext) {
		if !shared.real {
			Skip("no controller of Jobs runs")
		}
		u := newUser(ctx)
		// An annotation says until when: how long it takes until the policy is active depends on the machine.
		b := u.bundle("calendar-"+u.namespace, map[string]string{"calendar.rego": fmt.Sprintf(`package extend.rollout.calendar_%s
until := input.workload.annotations["shop.example/closed-until"]

# METADATA
# title: Stock-taking
# labels: {id: calendar.closed}
hold contains {"rule": "calendar.closed", "reason": "Closed", "message": "The shop counts its stock.", "until": until, "run": "Wait"} if {
	input.workload.namespace == %q
	input.now < time.parse_rfc3339_ns(until)
}
`, strings.ReplaceAll(u.namespace, "-", "_"), u.namespace)})
		Expect(meta.IsStatusConditionTrue(b.Status.Conditions, policy.PolicyBundleReady)).To(BeTrue(), "%v", b.Status)
		until := time.Now().Add(20 * time.Second).UTC().Truncate(time.Second)
		u.apply(`{apiVersion: apps.kruise.io/v1beta1, kind: AdvancedCronJob, metadata: {name: count, annotations: {shop.example/closed-until: "` + until.Format(time.RFC3339) + `"}},
			spec: {schedule: "@every 5s", concurrencyPolicy: Forbid,
			template: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: busybox, command: [sleep, "3600"]}]}}}}}}}`)
		held := func() string {
			return u.kubectl("get", "acj", "count", "-o", `jsonpath={range .status.conditions[?(@.type=="RunHeld")]}{.status} {.reason} {.message}{end}`)
		}
		Eventually(held).Should(Equal("True Closed The shop counts its stock. (rule calendar.closed)"))
		Expect(u.why("acj/count")).To(And(ContainSubstring("The shop counts its stock."), ContainSubstring("calendar.closed"), ContainSubstring("calendar-"+u.namespace)))
		show("kubectl get events while the calendar holds the run", u.kubectl("get", "events", "--field-selector", "involvedObject.name=count"))
		Expect(strings.Count(u.kubectl("get", "events", "--field-selector", "involvedObject.name=count"), "RunHeld")).To(Equal(1))
		Expect(u.kubectl("get", "jobs", "-o", "name")).To(BeEmpty())
		Expect(time.Now()).To(BeTemporally("<", until), "the machine is too slow for this test: the calendar has ended")
		jobs := func() []string {
			return strings.Fields(u.kubectl("get", "jobs", "-o", "jsonpath={.items[*].metadata.creationTimestamp}"))
		}
		Eventually(jobs).Should(HaveLen(1))
		started, err := time.Parse(time.RFC3339, jobs()[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(started).To(BeTemporally(">=", until))
		Eventually(held).ShouldNot(ContainSubstring("calendar")) // the next run waits for this one
	}, SpecTimeout(6*time.Minute))
})
