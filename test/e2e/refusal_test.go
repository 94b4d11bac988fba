// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The admission tests have every rule; these are to see that the rules are
// asked on a real cluster, in both versions, and what kubectl shows.
var _ = Describe("a CloneSet that is wrong", func() {
	DescribeTable("is refused with the field and what is allowed",
		func(ctx SpecContext, replace []string, want ...string) {
			u := newUser(ctx)
			out := u.refused(strings.NewReplacer(replace...).Replace(web("wrong", 2, "nginx:1.20")))
			for _, w := range want {
				Expect(out).To(ContainSubstring(w))
			}
		},
		Entry("in its replicas", []string{"replicas: 2", "replicas: -1"}, "spec.replicas", "-1"),
		Entry("in its partition", []string{"maxUnavailable: 1", `partition: "half"`}, "spec.updateStrategy.rollingUpdate.partition", "half"),
		Entry("with nothing that may be unavailable", []string{"maxUnavailable: 1", "maxUnavailable: 0"}, "maxUnavailable and maxSurge should not both be less than 1"),
		Entry("in its selector", []string{"matchLabels: {app: wrong}}\n  updateStrategy", "matchLabels: {app: other}}\n  updateStrategy"}, "spec.template.metadata.labels"),
		Entry("in its policy", []string{"InPlaceIfPossible", "Sideways"}, "podUpdatePolicy", "Sideways"),
		Entry("without an image", []string{", image: nginx:1.20", ""}, "spec.template.spec.containers[0].image"),
	)

	It("is protected from being deleted by its label", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("kept", 1, "nginx:1.20"))
		u.kubectl("label", "clone", "kept", "policy.kruise.io/delete-protection=Always")
		out, err := u.try("kubectl", "-n", u.namespace, "delete", "clone", "kept")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"))
		u.kubectl("label", "clone", "kept", "policy.kruise.io/delete-protection-")
	}, SpecTimeout(6*time.Minute))

	It("serves both versions, and the scale subresource", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("both", 1, "nginx:1.20"))
		Expect(u.kubectl("get", "clonesets.v1alpha1.apps.kruise.io", "both", "-o", "jsonpath={.spec.updateStrategy.type}")).To(Equal("InPlaceIfPossible"))
		Expect(u.kubectl("get", "clonesets.v1beta1.apps.kruise.io", "both", "-o", "jsonpath={.spec.updateStrategy.rollingUpdate.podUpdatePolicy}")).To(Equal("InPlaceIfPossible"))
		u.kubectl("scale", "cloneset", "both", "--replicas=3")
		Eventually(u.status).WithArguments("both").Should(Equal(settled(3)))
	}, SpecTimeout(6*time.Minute))
})
