// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

var _ = Describe("a ResourceDistribution", func() {
	It("keeps copies in the namespaces that its labels select, and mends them", Label("smoke"), func(ctx SpecContext) {
		u, other := newUser(ctx), newUser(ctx)
		name := "d-" + u.namespace
		u.apply(fmt.Sprintf(`
apiVersion: apps.kruise.io/v1alpha1
kind: ResourceDistribution
metadata: {name: %[1]s}
spec:
  resource:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: game-demo}
    data: {game.properties: "enemy.types=aliens,monsters"}
  targets:
    includedNamespaces: {list: [{name: %[2]s}, {name: %[2]s-none}]}
    namespaceLabelSelector: {matchLabels: {kubernetes.io/metadata.name: %[3]s}}
`, name, u.namespace, other.namespace))
		DeferCleanup(func(ctx context.Context) {
			d := &v1beta1.ResourceDistribution{}
			d.Name = name
			Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, d))).To(Succeed())
		})
		Eventually(u.kubectl).WithArguments("get", "distributor", name, "--no-headers").Should(MatchRegexp(`^\S+ +3 +2 +1$`))
		show("kubectl get distributor", u.kubectl("get", "distributor", name))
		Expect(u.kubectl("get", "distributor", name, "-o", `jsonpath={.status.conditions[?(@.type=="NamespaceNotExists")].failedNamespaces}`)).To(Equal(`["` + u.namespace + `-none"]`))
		data := func(u *user) string {
			out, _ := u.try("kubectl", "-n", u.namespace, "get", "configmap", "game-demo", "-o", "jsonpath={.data}")
			return out
		}
		Expect(data(other)).To(ContainSubstring("aliens"))
		u.kubectl("delete", "configmap", "game-demo")
		Eventually(data).WithArguments(u).Should(ContainSubstring("aliens"))
		u.kubectl("patch", "configmap", "game-demo", "--type=merge", "-p", `{"data":{"game.properties":"none"}}`)
		Eventually(data).WithArguments(u).Should(ContainSubstring("aliens"))
		u.kubectl("patch", "distributor", name, "--type=json", "-p", `[{"op":"replace","path":"/spec/targets/includedNamespaces/list","value":[]}]`)
		Eventually(data).WithArguments(u).Should(ContainSubstring("not found"))
		Expect(data(other)).To(ContainSubstring("aliens"))
		u.kubectl("delete", "distributor", name)
		Eventually(data).WithArguments(other).Should(ContainSubstring("not found"))
	}, SpecTimeout(6*time.Minute))
})
