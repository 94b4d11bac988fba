// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the installation", Serial, func() {
	It("shows what the introduction shows", func(ctx SpecContext) {
		u := newUser(ctx)
		Expect(u.kubectl("get", "crd")).To(ContainSubstring("clonesets.apps.kruise.io"))
		if shared.installed.Endpoint != "" {
			Skip("the manager runs outside of the cluster")
		}
		Eventually(func() string { // an upgrade may still be ending the pods before
			return u.kubectl("get", "pods", "-n", "kruise-system", "--no-headers", "-l", "control-plane=controller-manager")
		}).Should(MatchRegexp(`^kruise-controller-manager-\S+ +1/1 +Running +\d+ +\S+\nkruise-controller-manager-\S+ +1/1 +Running +\d+ +\S+$`))
		Eventually(func() string { // a leader that ended has released it, and the next one takes it within seconds
			return u.kubectl("get", "lease", "-n", "kruise-system", "kruise-manager", "-o", "jsonpath={.spec.holderIdentity}")
		}).Should(ContainSubstring("kruise-controller-manager-"))
	}, SpecTimeout(5*time.Minute))

	It("goes on when its leader is killed", func(ctx SpecContext) {
		if shared.installed.Endpoint != "" {
			Skip("the manager runs outside of the cluster")
		}
		u := newUser(ctx)
		u.apply(web("lead", 4, "nginx:1.20"))
		Eventually(u.status).WithArguments("lead").Should(Equal(settled(4)))
		u.apply(web("lead", 4, "nginx:1.21"))
		holder := u.kubectl("get", "lease", "-n", "kruise-system", "kruise-manager", "-o", "jsonpath={.spec.holderIdentity}")
		leader, _, _ := strings.Cut(holder, "_")
		u.kubectl("delete", "pod", "-n", "kruise-system", leader, "--grace-period=0", "--force")
		Eventually(u.status).WithArguments("lead").WithTimeout(3 * time.Minute).Should(Equal(settled(4)))
		u.kubectl("rollout", "status", "-n", "kruise-system", "deployment/kruise-controller-manager", "--timeout=2m")
	}, SpecTimeout(6*time.Minute))

	It("is not upgraded to an image that is another one, nor with a gate that does not exist, and nothing is changed", func(ctx SpecContext) {
		if shared.installed.Endpoint != "" {
			Skip("the check runs in a pod")
		}
		u := newUser(ctx)
		installed := func() string {
			return u.kubectl("get", "deployment", "-n", "kruise-system", "kruise-controller-manager", "-o", "jsonpath={.metadata.generation}") + " " +
				u.kubectl("get", "mutatingwebhookconfiguration", "kruise-mutating-webhook-configuration", "-o", "jsonpath={.metadata.generation}")
		}
		before := installed()
		for values, want := range map[string]string{
			"manager.image.repository=nginx,manager.image.tag=1.20,webhookConfiguration.timeoutSeconds=7": "upgrade-check",
			"featureGates=NoSuchGate=true,webhookConfiguration.timeoutSeconds=7":                          "NoSuchGate",
		} {
			out, err := u.try("helm", "upgrade", "kruise", "charts/kruise", "--reset-then-reuse-values", "--set", values, "--timeout", "1m")
			Expect(err).To(HaveOccurred(), out)
			Expect(out).To(ContainSubstring("pre-upgrade hooks failed"))
			told, err := u.try("kubectl", "logs", "-n", "kruise-system", "job/kruise-upgrade-check")
			if err != nil || !strings.Contains(told, want) { // a program that cannot be started writes no log
				told = u.kubectl("get", "pods", "-n", "kruise-system", "-l", "job-name=kruise-upgrade-check", "-o", "jsonpath={.items[*].status.containerStatuses[*].state.terminated.message}")
			}
			Expect(told).To(ContainSubstring(want))
			Expect(installed()).To(Equal(before))
		}
		u.helm("upgrade", "kruise", "charts/kruise", "--reset-then-reuse-values", "--timeout", "3m", "--wait")
	}, SpecTimeout(10*time.Minute))

	It("is not removed while there are CloneSets", func(ctx SpecContext) {
		if shared.installed.Endpoint != "" {
			Skip("the check runs in a pod")
		}
		u := newUser(ctx)
		u.apply(web("stay", 1, "nginx:1.20"))
		Eventually(u.status).WithArguments("stay").Should(Equal(settled(1)))
		out, err := u.try("helm", "uninstall", "kruise", "--timeout", "1m")
		Expect(err).To(HaveOccurred(), out)
		Expect(u.kubectl("logs", "-n", "kruise-system", "job/kruise-finalizer")).To(ContainSubstring("there still exists some clonesets in the cluster"))
		Expect(u.status("stay")).To(Equal(settled(1)))
		u.kubectl("delete", "job", "-n", "kruise-system", "kruise-finalizer")

		By("keeping the installation, as its README says")
		out, err = u.try("helm", "upgrade", "kruise", "charts/kruise", "--dry-run=server")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("has no deployed releases"))
		var history []struct{ Revision int }
		Expect(json.Unmarshal([]byte(u.helm("history", "kruise", "--max", "1", "-o", "json")), &history)).To(Succeed())
		u.helm("rollback", "kruise", strconv.Itoa(history[0].Revision))
		u.helm("upgrade", "kruise", "charts/kruise", "--dry-run=server", "--reuse-values")
		u.kubectl("rollout", "status", "-n", "kruise-system", "deployment/kruise-controller-manager", "--timeout=2m")
		Expect(u.status("stay")).To(Equal(settled(1)))
	}, SpecTimeout(6*time.Minute))
})
