// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// A CloneSet whose pods have a container of a SidecarSet, which is upgraded hot.
var _ = Describe("the pods of a CloneSet", func() {
	// start makes both, and returns the name of the SidecarSet.
	start := func(u *user) string {
		GinkgoHelper()
		name := "sidecars-" + u.namespace
		u.apply(fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: %s}, spec: {namespace: %s, selector: {matchLabels: {app: web}},
			containers: [{name: agent, image: "busybox:1.34", command: [sh, -c, 'echo "agent $SIDECARSET_VERSION"; sleep 36000'],
			upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "busybox:1.32"}}]}}`, name, u.namespace))
		DeferCleanup(func(ctx SpecContext) {
			set := &v1beta1.SidecarSet{}
			set.Name = name
			Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, set))).To(Succeed())
		})
		u.apply(`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, labels: {app: web}}, spec: {replicas: 2, selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 1, containers: [
			{name: main, image: "busybox:1.32", command: [sh, -c, 'echo "main of $HOSTNAME"; sleep 36000'], ports: [{containerPort: 8080}]}]}}}}`)
		Eventually(u.status).WithArguments("web").Should(Equal(settled(2)))
		return name
	}
	regatta := func(u *user, args ...string) string {
		GinkgoHelper()
		out, err := u.try("regatta", append([]string{args[0], "-n", u.namespace}, args[1:]...)...)
		ran(err, out, "regatta", args)
		return strings.TrimSpace(out)
	}
	// works is the container that works in each pod of the SidecarSet.
	works := func(u *user) (out []string) {
		for _, pod := range u.pods("web") {
			out = append(out, pod.Annotations[v1beta1.SidecarSetWorkingHotUpgradeKey])
		}
		return out
	}

	It("run commands and have logs, also in the container of a SidecarSet that works now", func(ctx SpecContext) {
		if !shared.real {
			Skip("simulated nodes have no containers that run")
		}
		u := newUser(ctx)
		set := start(u)
		names := u.names("web")

		By("running commands")
		Expect(names).To(ContainElement(regatta(u, "exec", "clone/web", "-c", "main", "--", "sh", "-c", "echo $HOSTNAME")))
		Expect(regatta(u, "exec", "pod/"+names[0], "-c", "main", "--", "sh", "-c", "echo $HOSTNAME")).To(Equal(names[0]))
		out, err := u.try("regatta", "exec", "-n", u.namespace, "clone/web", "-c", "main", "--", "sh", "-c", "echo failing >&2; exit 7")
		var ended *exec.ExitError
		Expect(errors.As(err, &ended)).To(BeTrue(), "%v\n%s", err, out)
		Expect(ended.ExitCode()).To(Equal(7))
		Expect(out).To(HavePrefix("failing\n"))
		typing := exec.CommandContext(ctx, shared.programs["regatta"], "exec", "-n", u.namespace, "clone/web", "-c", "main", "-i", "--", "cat")
		typing.Env, typing.Stdin = shared.installed.Env(shared.programs), strings.NewReader("typed")
		typed, err := typing.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", typed)
		Expect(string(typed)).To(Equal("typed"))

		By("reading logs")
		var lines []string
		for _, name := range names {
			lines = append(lines, fmt.Sprintf("[pod/%[1]s/main] main of %[1]s", name))
		}
		Expect(strings.Split(regatta(u, "logs", "clone/web", "-c", "main", "--all-pods"), "\n")).To(ConsistOf(lines))

		By("reaching the container of the SidecarSet, before and after an upgrade")
		version := []string{"exec", "clone/web", "-S", set, "--", "sh", "-c", "echo $SIDECARSET_VERSION"}
		Expect(works(u)).To(HaveEach(`{"agent":"agent-1"}`))
		Expect(regatta(u, version...)).To(Equal("1"))
		Expect(regatta(u, "logs", "pod/"+names[0], "-S", set)).To(Equal("agent 1"))
		u.kubectl("patch", "sidecarset", set, "--type=json", "-p", `[{"op": "replace", "path": "/spec/containers/0/image", "value": "busybox:1.35.0"}]`)
		Eventually(works).WithArguments(u).Should(And(HaveLen(2), HaveEach(`{"agent":"agent-2"}`)))
		Eventually(u.sidecars).WithArguments(set).Should(Equal("2 2 2"))
		Eventually(func() string { // the annotation changes a moment before the container
			out, _ := u.try("regatta", slices.Insert(slices.Clone(version), 1, "-n", u.namespace)...)
			return out
		}).Should(MatchRegexp(`^\d{2,}\n$`), "it is the resource version of the SidecarSet")
		Expect(regatta(u, "logs", "pod/"+names[0], "-S", set, "-c", "agent", "--prefix")).To(MatchRegexp(`^\[pod/%s/agent-2\] agent \d{2,}$`, names[0]))
	}, SpecTimeout(8*time.Minute))

	It("are behind a Service, and have an autoscaler that reads their scale", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("web", 2, "nginx:1.20"))
		Expect(regatta(u, "expose", "clone/web", "--port", "80", "--target-port", "8080")).To(Equal("service/web exposed"))
		Expect(regatta(u, "autoscale", "clone/web", "--min", "2", "--max", "3", "--cpu", "80%")).To(Equal("horizontalpodautoscaler.autoscaling/web autoscaled"))
		Eventually(u.status).WithArguments("web").Should(Equal(settled(2)))
		endpoints := func() []string {
			return strings.Fields(u.kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "jsonpath={.items[*].endpoints[*].targetRef.name}"))
		}
		Eventually(endpoints).Should(ConsistOf(u.names("web")))
		Eventually(func() string {
			return u.kubectl("get", "hpa", "web", "-o", `jsonpath={.status.conditions[?(@.type=="AbleToScale")].status} {.status.currentReplicas}`)
		}).Should(Equal("True 2"))
	}, SpecTimeout(6*time.Minute))
})
