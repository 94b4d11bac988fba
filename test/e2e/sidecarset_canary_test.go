// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// The sections of the tutorial about which pods are updated, in both versions of the API. Its SidecarSets
// stand as they are, and are for the whole cluster; its pods have a second to end, since their `sleep` takes no signal.
var _ = Describe("a SidecarSet that is released step by step", Serial, func() {
	const pods = `
apiVersion: v1
kind: Pod
metadata:
  labels:
    app: nginx
  name: test-pod
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: app
      image: nginx:1.7.9
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx
spec:
  replicas: 3
  revisionHistoryLimit: 3
  selector:
    matchLabels:
      app: nginx
  template:
    metadata:
      labels:
        app: nginx
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: ngx
          image: nginx:1.7.9
          ports:
            - containerPort: 80
`
	// apply applies a SidecarSet, which goes with the spec.
	apply := func(u *user, manifest string) {
		GinkgoHelper()
		u.apply(manifest)
		DeferCleanup(func(ctx SpecContext) {
			u.ctx = ctx
			u.kubectl("delete", "sidecarsets", "--all")
			// The next spec has SidecarSets of the same names, which match these pods until they are gone.
			u.kubectl("delete", "deployments", "--all", "--cascade=foreground")
			u.kubectl("delete", "pods", "--all")
		})
	}
	// running is how many pods run an image of a sidecar, and are ready, as kubectl prints it.
	running := func(u *user, container, selector string) string {
		GinkgoHelper()
		counts := map[string]int{}
		lines := u.kubectl("get", "pods", "-l", selector, "-o", `jsonpath={range .items[*]}{.status.containerStatuses[?(@.name=="`+container+`")].image}`+
			` {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
		for line := range strings.Lines(lines) {
			image, ready, _ := strings.Cut(strings.TrimSpace(line), " ")
			counts[strings.TrimPrefix(image, "docker.io/library/")+" "+ready]++
		}
		return strings.TrimPrefix(fmt.Sprint(counts), "map")
	}
	show := func(u *user, what string) {
		GinkgoHelper()
		AddReportEntry(what, u.kubectl("get", "pods", "-l", "app=nginx", "-o",
			`custom-columns=NAME:.metadata.name,CANARY:.metadata.labels.canary\.release,SIDECAR:.spec.containers[?(@.name=="sidecar1")].image,RESTARTS:.status.containerStatuses[*].restartCount`))
	}
	const all, canary, rest = "app=nginx", "app=nginx,canary.release=true", "app=nginx,canary.release!=true"

	It("goes by the selector, the partition and the pause of the tutorial, written by both versions of the API in turn", func(ctx SpecContext) {
		u := newUser(ctx)
		versions := []string{"v1alpha1", "v1beta1"}
		// in has one version write after the other.
		in := func(manifest string) string {
			slices.Reverse(versions)
			return strings.ReplaceAll(manifest, "apps.kruise.io/v1alpha1", "apps.kruise.io/"+versions[0])
		}
		apply(u, in(tutorial("1165-sidecarset.yaml")))
		for _, version := range versions {
			Eventually(u.kubectl).WithArguments("get", "sidecarsets."+version+".apps.kruise.io", "test-sidecarset").Should(MatchRegexp(`NAME +MATCHED +UPDATED +READY +AGE\ntest-sidecarset +0 +0 +0 `))
		}
		u.apply(pods)
		Eventually(u.sidecars).WithArguments("test-sidecarset").Should(Equal("4 4 4"))
		Expect(running(u, "sidecar1", all)).To(Equal("[busybox:latest True:4]"))

		By("updating the pods with the label of the canary, and no other")
		u.apply(in(tutorial("1453-sidecarset-transfer.yaml")))
		u.apply(strings.Replace(strings.SplitN(pods, "---", 2)[0], "app: nginx", "app: nginx\n    canary.release: 'true'", 1))
		Eventually(running).WithArguments(u, "sidecar1", canary).Should(Equal("[busybox:1.35.0 True:1]"))
		Eventually(u.sidecars).WithArguments("test-sidecarset").Should(Equal("4 1 4"))
		Consistently(running).WithArguments(u, "sidecar1", rest).WithTimeout(3 * time.Second).Should(Equal("[busybox:latest True:3]"))
		show(u, "a canary by selector")

		By("updating none while it is paused, though new pods get what is new")
		paused := tutorial("1393-sidecarset-partition.yaml")
		_, strategy, _ := strings.Cut(paused, "  updateStrategy:\n")
		release := func(strategy string) {
			GinkgoHelper()
			before, after, _ := strings.Cut(in(tutorial("1453-sidecarset-transfer.yaml")), "    type: RollingUpdate\n    selector:\n      matchLabels:\n        canary.release: 'true'\n")
			u.apply(before + strategy + after)
		}
		release(strategy)
		u.kubectl("delete", "pod", "test-pod")
		u.kubectl("scale", "deployment", "nginx", "--replicas=4")
		Eventually(u.sidecars).WithArguments("test-sidecarset").Should(Equal("4 1 4"))
		Consistently(running).WithArguments(u, "sidecar1", all).WithTimeout(3 * time.Second).Should(Equal("[busybox:1.35.0 True:1 busybox:latest True:3]"))

		By("updating none where the partition is larger than the number of pods, and all but as many where it is not")
		release(strings.Replace(strategy, "paused: true", "paused: false", 1))
		Eventually(u.sidecars).WithArguments("test-sidecarset").Should(Equal("4 1 4"))
		Consistently(running).WithArguments(u, "sidecar1", all).WithTimeout(3 * time.Second).Should(Equal("[busybox:1.35.0 True:1 busybox:latest True:3]"))
		release("    type: RollingUpdate\n    partition: 2\n")
		Eventually(running).WithArguments(u, "sidecar1", all).Should(Equal("[busybox:1.35.0 True:2 busybox:latest True:2]"))
		Consistently(running).WithArguments(u, "sidecar1", all).WithTimeout(3 * time.Second).Should(Equal("[busybox:1.35.0 True:2 busybox:latest True:2]"))
		release("    type: RollingUpdate\n    partition: 25%\n    maxUnavailable: 2\n")
		Eventually(running).WithArguments(u, "sidecar1", all).Should(Equal("[busybox:1.35.0 True:3 busybox:latest True:1]"))
		show(u, "a partition")

		By("saying the same in each version")
		for _, path := range []string{"{.spec.updateStrategy.partition}", "{.spec.updateStrategy.maxUnavailable}", "{.status}"} {
			Expect(u.kubectl("get", "sidecarsets.v1alpha1.apps.kruise.io", "test-sidecarset", "-o", "jsonpath="+path)).
				To(Equal(u.kubectl("get", "sidecarsets.v1beta1.apps.kruise.io", "test-sidecarset", "-o", "jsonpath="+path)))
		}
	}, SpecTimeout(10*time.Minute))

	It("gives new pods with a label what a canary of it says, in place of its own", func(ctx SpecContext) {
		u := newUser(ctx)
		base := tutorial("1165-sidecarset.yaml")
		apply(u, base)
		u.apply(strings.NewReplacer(
			"v1alpha1", "v1beta1",
			"name: test-sidecarset", "name: canary-sidecarset\n  annotations: {apps.kruise.io/sidecarset-canary: 'true', apps.kruise.io/sidecarset-base: test-sidecarset}",
			"app: nginx", "app: nginx\n      canary.release: 'true'",
			"type: RollingUpdate\n    maxUnavailable: 1", "type: NotUpdate",
			"image: busybox", "image: busybox:1.35.0",
		).Replace(base))
		pod, deployment, _ := strings.Cut(pods, "---")
		u.apply(strings.Replace(pod, "app: nginx", "app: nginx\n    canary.release: 'true'", 1))
		u.apply(deployment)
		Eventually(running).WithArguments(u, "sidecar1", canary).Should(Equal("[busybox:1.35.0 True:1]"))
		Eventually(running).WithArguments(u, "sidecar1", rest).Should(Equal("[busybox:latest True:3]"))
		show(u, "a canary of a base")
		injected := `jsonpath={range .items[*]}{.metadata.annotations.kruise\.io/sidecarset-injected-list} {end}`
		Expect(u.kubectl("get", "pods", "-l", canary, "-o", injected)).To(Equal("canary-sidecarset"))
		Expect(u.kubectl("get", "pods", "-l", rest, "-o", injected)).To(Equal("test-sidecarset test-sidecarset test-sidecarset"))
		Eventually(u.sidecars).WithArguments("canary-sidecarset").Should(Equal("1 1 1"))
		Eventually(u.sidecars).WithArguments("test-sidecarset").Should(Equal("3 3 3"))

		By("updating the base: the pod of the canary keeps what it has")
		u.kubectl("patch", "sidecarset", "test-sidecarset", "--type=json", "-p", `[{"op": "replace", "path": "/spec/containers/0/image", "value": "busybox:1.36"}, {"op": "replace", "path": "/spec/updateStrategy/maxUnavailable", "value": "100%"}]`)
		Eventually(running).WithArguments(u, "sidecar1", rest).Should(Equal("[busybox:1.36 True:3]"))
		Expect(running(u, "sidecar1", canary)).To(Equal("[busybox:1.35.0 True:1]"))

		By("deleting the canary: the next pod with its label gets what the base says")
		set := &v1beta1.SidecarSet{}
		set.Name = "canary-sidecarset"
		Expect(shared.k8s.Delete(ctx, set)).To(Succeed())
		u.kubectl("delete", "pod", "test-pod")
		u.apply(strings.Replace(pod, "app: nginx", "app: nginx\n    canary.release: 'true'", 1))
		Eventually(running).WithArguments(u, "sidecar1", canary).Should(Equal("[busybox:1.36 True:1]"))
	}, SpecTimeout(10*time.Minute))
})
