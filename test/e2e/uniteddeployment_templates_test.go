// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The pods of all templates start at once, so that one spec takes hardly longer than each would.
var _ = Describe("a UnitedDeployment", func() {
	It("runs StatefulSets, Advanced StatefulSets or Deployments in zones as its template says", func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		all := []struct {
			name, field, spec, resource string
			// updated is how many pods have the new revision while partitions keep 4.
			updated int
		}{
			{"native", "statefulSetTemplate", "serviceName: none, podManagementPolicy: Parallel, ", "statefulsets.apps", 2},
			{"advanced", "advancedStatefulSetTemplate", "serviceName: none, podManagementPolicy: Parallel, ", "statefulsets.apps.kruise.io", 2},
			{"stateless", "deploymentTemplate", "", "deployments", 6}, // which have no partition (UD-08)
		}
		each := func(f func(i int)) {
			for i := range all {
				f(i)
			}
		}
		row := func(i int) string { return u.kubectl("get", "ud", all[i].name, "--no-headers") }
		in := func(i, a, b int) {
			GinkgoHelper()
			Eventually(func() map[string]int { return placed(u, all[i].name, nodes) }).Should(Equal(map[string]int{zones[0]: a, zones[1]: b}), all[i].name)
		}
		patch := func(i int, spec string) {
			u.kubectl("patch", "ud", all[i].name, "--type=merge", "-p", `{"spec": `+spec+`}`)
		}
		each(func(i int) {
			name := all[i].name
			template := fmt.Sprintf(`%[2]s: {metadata: {labels: {app: %[1]s}}, spec: {selector: {matchLabels: {app: %[1]s}}, %[3]s template: %[4]s}}`,
				name, all[i].field, all[i].spec, podTemplate(name, "nginx:1.20", ""))
			u.apply(unitedDeployment(name, 4, template, "", subsetsIn("topology.kubernetes.io/zone", zones, ", replicas: 25%")...))
		})
		each(func(i int) {
			in(i, 1, 3)
			Eventually(row).WithArguments(i).Should(MatchRegexp(`^%s +4 +4 +4 +4 +\S+$`, all[i].name))
			Expect(u.kubectl("get", all[i].resource, "-l", "app="+all[i].name, "-o", `jsonpath={range .items[*]}{.metadata.labels.apps\.kruise\.io/subset-name}={.spec.replicas} {end}`)).
				To(SatisfyAll(ContainSubstring("subset-a=1"), ContainSubstring("subset-b=3")))
			Eventually(u.events).WithArguments(all[i].name, "SuccessfulUpdateSubset").Should(ConsistOf("Create 2 Subset (subset-a, subset-b)"))
			u.kubectl("scale", "ud", all[i].name, "--replicas=6")
		})
		each(func(i int) {
			in(i, 2, 4)
			Eventually(row).WithArguments(i).Should(MatchRegexp(`^%s +6 +6 +6 +6 `, all[i].name))
			why := u.why("ud/" + all[i].name)
			Expect(why).To(SatisfyAll(
				ContainSubstring("UnitedDeployment %s/%s is PLACED", u.namespace, all[i].name),
				MatchRegexp(`subset-a +2 +\d+ +placement.allocation.given +it is to have 2`), MatchRegexp(`subset-b +4 +\d+ +placement.allocation.share `)))
			for name, pod := range u.pods(all[i].name) {
				Expect(u.why("pod/" + name)).To(ContainSubstring("It is in subset %s of UnitedDeployment %s", pod.Labels["apps.kruise.io/subset-name"], all[i].name))
				break
			}
		})

		By("updating two pods of the second zone, then all")
		each(func(i int) {
			patch(i, fmt.Sprintf(`{"updateStrategy": {"manualUpdate": {"partitions": {"subset-a": 2, "subset-b": 2}}}, "template": {%q: {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:1.21"}]}}}}}}`, all[i].field))
		})
		each(func(i int) {
			Eventually(row).WithArguments(i).Should(MatchRegexp(`^%s +6 +6 +%d +6 `, all[i].name, all[i].updated))
			if all[i].updated < 6 {
				for name, pod := range u.pods(all[i].name) {
					if pod.Spec.Containers[0].Image == "nginx:1.21" {
						Expect(pod.Labels["apps.kruise.io/subset-name"]).To(Equal("subset-b"), name)
					}
				}
			}
		})
		each(func(i int) {
			patch(i, `{"updateStrategy": {"manualUpdate": {"partitions": {"subset-a": 0, "subset-b": 0}}}}`)
		})
		each(func(i int) {
			Eventually(row).WithArguments(i).Should(MatchRegexp(`^%s +6 +6 +6 +6 `, all[i].name))
			Eventually(func() string {
				return u.kubectl("get", "ud", all[i].name, "-o", `jsonpath={.status.conditions[?(@.type=="UnitedDeploymentUpdated")].status}`)
			}).Should(Equal("True"))
			in(i, 2, 4)
		})
	}, SpecTimeout(8*time.Minute))
})
