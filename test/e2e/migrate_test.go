// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("regatta migrate", func() {
	const (
		servers = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 8080}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {minReplicas: 3, maxReplicas: 5,
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web},
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
  spec: {terminationGracePeriodSeconds: 10, containers: [{name: main, image: "busybox:1.32",
    command: [/bin/sh, -c, "echo fine > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"],
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1, timeoutSeconds: 10},
    lifecycle: {preStop: {exec: {command: [sleep, "3"]}}}}]}}}}`
		// The Service is there before the pod, so that its address is in the environment.
		asker = `{apiVersion: v1, kind: Pod, metadata: {name: asker}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "busybox:1.32",
  command: [/bin/sh, -c, "while :; do printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 10 $WEB_SERVICE_HOST 8080 | grep -x fine || echo failed; sleep 0.05; done"]}]}}`
	)

	It("moves the pods of a Deployment to a CloneSet and back, and no request fails", func(ctx SpecContext) {
		if !shared.real {
			Skip("simulated nodes serve no requests")
		}
		u := newUser(ctx)
		u.apply(servers)
		u.kubectl("rollout", "status", "deployment/web", "--timeout=90s")
		u.apply(asker)
		u.kubectl("wait", "--for=condition=Ready", "pod/asker", "--timeout=60s")
		// answers are how many requests were answered and how many failed.
		answers := func() (fine, failed int) {
			log := u.kubectl("logs", "asker")
			return strings.Count(log, "fine\n"), strings.Count(log, "failed\n")
		}
		serves := func() {
			GinkgoHelper()
			before, _ := answers()
			Eventually(func() int { fine, _ := answers(); return fine }).Should(BeNumerically(">", before+20))
			_, failed := answers()
			Expect(failed).To(BeZero(), "requests that failed")
		}
		regatta := func(args ...string) string {
			GinkgoHelper()
			out, err := u.try("regatta", append(args, "-n", u.namespace)...)
			ran(err, out, "regatta", args)
			return out
		}
		scaled := func() string {
			return u.kubectl("get", "hpa", "web", "-o", "jsonpath={.spec.scaleTargetRef.kind} {.spec.scaleTargetRef.name}")
		}
		serves()

		began := time.Now()
		out := regatta("migrate", "deployment/web", "--timeout", "90s")
		AddReportEntry("regatta migrate deployment/web", out)
		AddReportEntry("took", time.Since(began).Round(time.Second).String())
		Expect(out).To(ContainSubstring("CloneSet web: 0 -> 1 pod\n"))
		Expect(out).To(ContainSubstring("Deployment web: 1 -> 0 pods\n"))
		Expect(u.kubectl("get", "clone", "web", "-o", "jsonpath={.status.availableReplicas}")).To(Equal("3"))
		Expect(u.kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")).To(Equal("0"))
		Expect(scaled()).To(Equal("CloneSet web"))
		serves()

		By("going back, two pods at a time")
		out = regatta("migrate", "clone/web", "--step", "50%", "--delete-source", "--timeout", "90s")
		AddReportEntry("regatta migrate clone/web", out)
		Expect(u.kubectl("get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}")).To(Equal("3"))
		Expect(u.kubectl("get", "clone")).To(ContainSubstring("No resources found"))
		Expect(scaled()).To(Equal("Deployment web"))
		serves()
	}, SpecTimeout(10*time.Minute))
})
