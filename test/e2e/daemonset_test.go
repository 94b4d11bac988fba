// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// The Advanced DaemonSet section of the tutorial, in a namespace of its own: a selector of
// nodes, partition and pause, and an update in place.
var _ = Describe("an Advanced DaemonSet", func() {
	const manifest = `
apiVersion: apps.kruise.io/v1alpha1
kind: DaemonSet
metadata:
  name: nginx
spec:
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      %s
  selector:
    matchLabels:
      k8s-app: nginx
  template:
    metadata:
      labels:
        k8s-app: nginx
        app: nginx
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - image: %s
          name: nginx
          ports:
            - name: http
              containerPort: 80
`
	set := func(u *user) *v1beta1.DaemonSet {
		out := &v1beta1.DaemonSet{}
		Expect(shared.k8s.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: "nginx"}, out)).To(Succeed())
		return out
	}
	// status is how many nodes there are, and how many are ready and updated.
	status := func(u *user) string {
		s := set(u)
		return fmt.Sprintf("observed=%t nodes=%t ready=%d updated=%d", s.Status.ObservedGeneration == s.Generation,
			s.Status.CurrentNumberScheduled == s.Status.DesiredNumberScheduled, s.Status.NumberReady, s.Status.UpdatedNumberScheduled)
	}
	settled := func(u *user, nodes, updated int) {
		GinkgoHelper()
		Eventually(status).WithArguments(u).WithTimeout(2 * time.Minute).Should(Equal(fmt.Sprintf("observed=true nodes=true ready=%d updated=%d", nodes, updated)))
	}
	// byNode are the pods by their nodes, of which each has one.
	byNode := func(u *user) map[string]string {
		GinkgoHelper()
		out := map[string]string{}
		for name, p := range u.pods("nginx") {
			Expect(out).NotTo(HaveKey(p.Spec.NodeName), "a node has two pods")
			out[p.Spec.NodeName] = name + " " + p.Spec.Containers[0].Image
		}
		return out
	}

	It("runs a pod on each node, and updates them by node, in parts and in place", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(fmt.Sprintf(manifest, "rollingUpdateType: Standard", "nginx:1.24"))
		Eventually(func() int32 { return set(u).Status.DesiredNumberScheduled }).Should(BeNumerically(">=", 2))
		nodes := int(set(u).Status.DesiredNumberScheduled)
		settled(u, nodes, nodes)
		Expect(u.kubectl("get", "daemon")).To(MatchRegexp(`NAME +DESIRED +CURRENT +READY +UP-TO-DATE +AVAILABLE +AGE\nnginx +%[1]d +%[1]d +%[1]d +%[1]d +%[1]d `, nodes))
		before := byNode(u)
		Expect(before).To(HaveLen(nodes))
		var names []string
		for node := range before {
			names = append(names, node)
		}
		slices.Sort(names)
		first := names[0]

		u.apply(fmt.Sprintf(manifest, "rollingUpdateType: Standard\n      selector: {matchLabels: {kubernetes.io/hostname: "+first+"}}", "nginx:1.25"))
		settled(u, nodes, 1)
		after := byNode(u)
		for node, pod := range before {
			if node == first {
				Expect(after[node]).To(HaveSuffix("nginx:1.25"))
				continue
			}
			Expect(after[node]).To(Equal(pod))
		}
		describe := func() string { return u.kubectl("describe", "daemon", "nginx") }
		Eventually(describe).Should(And(ContainSubstring("Created pod: nginx-"), ContainSubstring("Deleted pod: nginx-"), ContainSubstring("daemonset-controller")))

		u.apply(fmt.Sprintf(manifest, fmt.Sprintf("partition: %d\n      paused: true", nodes-2), "nginx:1.25"))
		Eventually(func() string { return u.why("ads/nginx") }).Should(And(ContainSubstring("RolloutPaused"), MatchRegexp(`nodes +\S+ (held|waiting): `)))
		u.apply(fmt.Sprintf(manifest, fmt.Sprintf("partition: %d", nodes-2), "nginx:1.25"))
		settled(u, nodes, 2)
		Expect(byNode(u)[names[len(names)-1]]).To(HaveSuffix("nginx:1.25"), "nodes are updated by name, the last first")

		// Pods that were made before the type is InPlaceIfPossible are recreated, as in the tutorial.
		u.apply(fmt.Sprintf(manifest, "rollingUpdateType: InPlaceIfPossible", "nginx:1.26"))
		settled(u, nodes, nodes)
		Eventually(u.events).WithArguments("nginx", "numUnavailable >= maxUnavailable").Should(HaveLen(1))
		made := u.pods("nginx")
		u.apply(fmt.Sprintf(manifest, "rollingUpdateType: InPlaceIfPossible\n      maxUnavailable: 100%", "nginx:1.25"))
		settled(u, nodes, nodes)
		for name, p := range u.pods("nginx") {
			Expect(made).To(HaveKey(name))
			Expect(p.UID).To(Equal(made[name].UID), "%s was recreated", name)
			Expect(p.Spec.Containers[0].Image).To(Equal("nginx:1.25"))
		}
	}, SpecTimeout(8*time.Minute))
})
