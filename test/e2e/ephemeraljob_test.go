// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("an EphemeralJob", func() {
	start := func(ctx SpecContext) *user {
		GinkgoHelper()
		u := newUser(ctx)
		if !shared.real {
			Skip("simulated nodes run no ephemeral containers")
		}
		u.apply(`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web}, spec: {replicas: 3, selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: busybox, command: [sleep, "3600"]}]}}}}`)
		Eventually(func() string { return u.kubectl("get", "clone", "web", "-o", "jsonpath={.status.readyReplicas}") }).Should(Equal("3"))
		return u
	}
	job := func(name, spec, command string) string {
		return `{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, metadata: {name: ` + name + `}, spec: {selector: {matchLabels: {app: web}}, ` + spec + `
			template: {ephemeralContainers: [{name: ` + name + `, image: busybox, imagePullPolicy: IfNotPresent, terminationMessagePolicy: File, targetContainerName: main, command: [sh, -c, "` + command + `"]}]}}}`
	}

	It("looks into pods that run, two at a time, and restarts none", Label("smoke"), func(ctx SpecContext) {
		u := start(ctx)
		u.apply(job("look", "parallelism: 2,", "ps; sleep 1"))
		Eventually(func() string { return u.kubectl("get", "ejob", "look") }).Should(
			MatchRegexp(`^NAME +STATUS +MATCH +SUCCEED +FAILED +RUNNING +WAITING +AGE\nlook +Succeeded +3 +3 +0 +0 +0 +\S+`))
		Expect(u.kubectl("get", "ejob", "look", "-o", "jsonpath={.status.conditions[*].type}")).To(Equal("Initialized JobSucceeded Ready"))
		Expect(u.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")).To(Equal("0 0 0"))
		Expect(u.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.ephemeralContainerStatuses[*].state.terminated.reason}")).To(Equal("Completed Completed Completed"))

		u.apply(job("wrong", "parallelism: 3,", "exit 3"))
		Eventually(func() string { return u.kubectl("get", "ejob", "wrong", "--no-headers") }).Should(MatchRegexp(`^wrong +Failed +3 +0 +3 +0 +0 `))

		u.kubectl("patch", "ejob", "look", "--type=merge", "-p", `{"spec": {"ttlSecondsAfterFinished": 1}}`)
		Eventually(func() string { return u.kubectl("get", "ejob", "look", "--ignore-not-found") }).Should(BeEmpty())
	}, SpecTimeout(6*time.Minute))

	It("is kept out of pods by a policy, and fails at its deadline", func(ctx SpecContext) {
		u := start(ctx)
		u.apply(`{apiVersion: policy.kruise.io/v1alpha1, kind: PolicyBundle, metadata: {name: tickets}, spec: {files: {tickets.rego: "package extend.placement.tickets\n\nimport future.keywords.not\n\ndeny contains {\"reason\": \"TicketMissing\", \"message\": sprintf(\"Pod %s needs a ticket.\", [pod.name]), \"target\": pod.name} if {\n\tnot input.job.annotations.ticket\n\tsome pod in input.pods\n}\n"}}}`)
		Eventually(func() string {
			return u.kubectl("get", "policybundle", "tickets", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		}).Should(Equal("True"))
		u.apply(job("look", "activeDeadlineSeconds: 60,", "sleep 3600"))
		Eventually(func() string {
			return u.kubectl("get", "ejob", "look", "-o", `jsonpath={.status.phase} {.status.match} {.status.conditions[?(@.type=="EphemeralJobDenied")].message}`)
		}).Should(MatchRegexp(`^Waiting 0 Pod web-\S+ needs a ticket\. \(rule extend\.placement\.tickets\); 3 pods are denied: `))
		Expect(u.kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.ephemeralContainers}")).To(BeEmpty())

		u.kubectl("annotate", "ejob", "look", "ticket=INC-7")
		Eventually(func() string { return u.kubectl("get", "ejob", "look", "--no-headers") }).Should(MatchRegexp(`^look +Running +3 +0 +0 +1 +0 `))
		u.kubectl("patch", "ejob", "look", "--type=merge", "-p", `{"spec": {"activeDeadlineSeconds": 1}}`)
		Eventually(func() string {
			return u.kubectl("get", "ejob", "look", "-o", `jsonpath={.status.phase} {.status.conditions[?(@.type=="JobFailed")].reason}`)
		}).Should(Equal("Failed DeadlineExceeded"))
	}, SpecTimeout(6*time.Minute))
})
