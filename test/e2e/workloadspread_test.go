// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a WorkloadSpread", func() {
	manifest := func(u *user, kind, name, strategy string, zones []string) {
		GinkgoHelper()
		apiVersion := map[string]string{"Deployment": "apps/v1", "CloneSet": "apps.kruise.io/v1alpha1"}[kind]
		u.apply(fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: WorkloadSpread, metadata: {name: %s}, spec: {targetRef: {apiVersion: %s, kind: %s, name: %s}, %s
			subsets: [{name: first, maxReplicas: 2, patch: {metadata: {labels: {subset: first}}}, requiredNodeSelectorTerm: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [%s]}]}},
			{name: second, requiredNodeSelectorTerm: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [%s]}]}}]}}`,
			name, apiVersion, kind, name, strategy, zones[0], zones[1]))
		// The API server calls the webhook for the namespace a moment later.
		Eventually(func() string {
			return u.kubectl("get", "mutatingwebhookconfiguration", "kruise-protection-webhook-configuration", "-o", "jsonpath={.webhooks[*].matchConditions[*].expression}{.webhooks[*].namespaceSelector}")
		}).Should(Or(ContainSubstring(u.namespace), Not(ContainSubstring("request.namespace"))))
		time.Sleep(time.Second) // until the API server goes by it
	}
	workload := func(kind, name string, replicas int, image string) string {
		apiVersion := map[string]string{"Deployment": "apps/v1", "CloneSet": "apps.kruise.io/v1alpha1"}[kind]
		return fmt.Sprintf(`{apiVersion: %[1]s, kind: %[2]s, metadata: {name: %[3]s}, spec: {replicas: %[4]d, selector: {matchLabels: {app: %[3]s}},
			template: {metadata: {labels: {app: %[3]s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "%[5]s"}]}}}}`, apiVersion, kind, name, replicas, image)
	}
	subsets := func(u *user, app string) map[string]int {
		out := map[string]int{}
		for _, pod := range u.pods(app) {
			mark := struct{ Subset string }{}
			_ = json.Unmarshal([]byte(pod.Annotations["apps.kruise.io/matched-workloadspread"]), &mark)
			out[mark.Subset]++
		}
		return out
	}
	status := func(u *user, name string) string {
		return u.kubectl("get", "ws", name, "-o", `jsonpath={range .status.subsetStatuses[*]}{.name}={.replicas}/{.missingReplicas} {end}`)
	}

	It("fills zones in order, and gives up the last one first", func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		manifest(u, "CloneSet", "web", "", zones)
		u.apply(workload("CloneSet", "web", 5, "nginx:1.20"))
		Eventually(u.status).WithArguments("web").Should(Equal(settled(5)))
		Expect(subsets(u, "web")).To(Equal(map[string]int{"first": 2, "second": 3}))
		for _, pod := range u.pods("web") {
			if pod.Labels["subset"] == "first" {
				Expect(nodes[zones[0]]).To(ContainElement(pod.Spec.NodeName))
			} else {
				Expect(nodes[zones[1]]).To(ContainElement(pod.Spec.NodeName))
			}
		}
		Eventually(func() string { return status(u, "web") }).Should(Equal("first=2/0 second=3/-1"))
		Eventually(func() string { return u.why("ws/web") }).Should(MatchRegexp(`first +2 +0 +placement.subset +at most 2`))
		for name := range u.pods("web") {
			Expect(u.why("pod/" + name)).To(MatchRegexp(`It is in subset (first|second) of WorkloadSpread web`))
			break
		}

		u.kubectl("scale", "clone", "web", "--replicas=2")
		Eventually(func() map[string]int { return subsets(u, "web") }).Should(Equal(map[string]int{"first": 2}))
		u.kubectl("delete", "pod", "-l", "app=web,subset=first")
		Eventually(func() map[string]int { return subsets(u, "web") }).Should(Equal(map[string]int{"first": 2}))

		By("a dry run, which counts nothing")
		u.kubectl("run", "lonely", "--image=nginx:1.20", "--dry-run=server")
		Eventually(func() string { return status(u, "web") }).Should(Equal("first=2/0 second=0/-1"))
	}, SpecTimeout(4*time.Minute))

	It("has the pods of a Deployment in their zones after an update that creates before it deletes", func(ctx SpecContext) {
		u := newUser(ctx)
		zones, _ := zones(u)
		manifest(u, "Deployment", "web", "", zones)
		u.apply(workload("Deployment", "web", 4, "nginx:1.20"))
		u.kubectl("rollout", "status", "deployment/web", "--timeout=90s")
		Expect(subsets(u, "web")).To(Equal(map[string]int{"first": 2, "second": 2}))
		u.apply(workload("Deployment", "web", 4, "nginx:1.21"))
		u.kubectl("rollout", "status", "deployment/web", "--timeout=90s")
		Eventually(func() map[string]int { return subsets(u, "web") }).Should(Equal(map[string]int{"first": 2, "second": 2}))
	}, SpecTimeout(4*time.Minute))

	It("gives up a zone that is cordoned", Serial, func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		cordon(u, nodes[zones[0]])
		manifest(u, "CloneSet", "shop", "scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 5}},", zones)
		u.apply(workload("CloneSet", "shop", 3, "nginx:1.20"))
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(3)))
		Expect(subsets(u, "shop")).To(Equal(map[string]int{"second": 3}))
		Expect(u.kubectl("get", "ws", "shop", "-o", `jsonpath={.status.subsetStatuses[0].conditions[0].status} {.status.subsetStatuses[0].conditions[0].reason}`)).To(Equal("False PodUnschedulable"))
		Expect(strings.Fields(u.kubectl("get", "ws", "shop", "--no-headers"))[:3]).To(Equal([]string{"shop", "shop", "CloneSet"}))
	}, SpecTimeout(4*time.Minute))
})
