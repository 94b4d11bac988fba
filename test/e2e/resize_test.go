// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

// The parts of manifests of the three kinds that differ.
var sizable = map[string]string{
	"CloneSet":    "replicas: 2\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}}",
	"StatefulSet": "replicas: 2\n  serviceName: sized\n  podManagementPolicy: Parallel\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}}",
	"DaemonSet":   "updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: InPlaceIfPossible, maxUnavailable: 1}}",
}

// sized is a workload whose container asks for a CPU time, has twice as much as limit, and
// the same for memory. more are lines of its container.
func sized(kind, image, cpu string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: %s
metadata: {name: sized}
spec:
  %s
  selector: {matchLabels: {app: sized}}
  template:
    metadata: {labels: {app: sized}}
    spec:
      terminationGracePeriodSeconds: 1
      readinessGates: [{conditionType: InPlaceUpdateReady}]
      containers:
      - name: nginx
        image: %s
        resources: {requests: {cpu: %s, memory: 16Mi}, limits: {cpu: "2", memory: 32Mi}}
        %s
`, kind, sizable[kind], image, cpu, strings.Join(more, "\n        "))
}

// cpus are the CPU times that pods ask for and that their nodes say they have, of those that
// are ready and complete.
func (u *user) cpus() map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for name, p := range u.pods("sized") {
		out[name] = "waits: " + inplace.IncompleteReason(p)
		if ready := inplace.FindCondition(p, corev1.PodReady); ready == nil || ready.Status != corev1.ConditionTrue || inplace.IncompleteReason(p) != "" || len(p.Status.ContainerStatuses) != 1 {
			continue
		}
		asked, has := p.Spec.Containers[0].Resources.Requests, p.Status.ContainerStatuses[0].Resources
		if has == nil {
			out[name] = "has no resources in its status"
			continue
		}
		out[name] = asked.Cpu().String() + " " + has.Requests.Cpu().String()
	}
	return out
}

// sizedPods waits until as many pods as there are to be are complete and have a CPU time.
func (u *user) sizedPods(n int, cpu string) map[string]*corev1.Pod {
	GinkgoHelper()
	Eventually(u.cpus).Should(And(HaveLen(n), HaveEach(cpu+" "+cpu)))
	return u.pods("sized")
}

// outSince is when a pod last left its services or came back.
func outSince(p *corev1.Pod) time.Time {
	return inplace.FindCondition(p, v1beta1.InPlaceUpdateReady).LastTransitionTime.Time
}

func uids(pods map[string]*corev1.Pod) map[string]types.UID {
	out := map[string]types.UID{}
	for name, p := range pods {
		out[name] = p.UID
	}
	return out
}

var _ = Describe("vertical scaling", func() {
	BeforeEach(func() {
		core, err := discovery.NewDiscoveryClientForConfigOrDie(shared.config).ServerResourcesForGroupVersion("v1")
		Expect(err).NotTo(HaveOccurred())
		if !slices.ContainsFunc(core.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" }) {
			Skip("before 1.33, Kubernetes resizes pods in place only with a feature gate")
		}
	})

	DescribeTable("in place keeps the pods of a", func(ctx SpecContext, kind string) {
		u := newUser(ctx)
		u.apply(sized(kind, "nginx:1.20", "10m"))
		Eventually(u.cpus).ShouldNot(BeEmpty())
		n := 2
		if kind == "DaemonSet" {
			Eventually(func() string {
				return u.kubectl("get", "daemon", "sized", "-o", "jsonpath={.status.desiredNumberScheduled}")
			}).ShouldNot(BeElementOf("", "0"))
			_, err := fmt.Sscan(u.kubectl("get", "daemon", "sized", "-o", "jsonpath={.status.desiredNumberScheduled}"), &n)
			Expect(err).NotTo(HaveOccurred())
		}
		before := u.sizedPods(n, "10m")

		By("giving them more, which neither restarts them nor takes them out of their services")
		u.apply(sized(kind, "nginx:1.20", "20m"))
		more := u.sizedPods(n, "20m")
		Expect(uids(more)).To(Equal(uids(before)))
		for name, p := range more {
			Expect(restarts(p)).To(Equal(restarts(before[name])))
			Expect(outSince(p)).To(Equal(outSince(before[name])))
		}

		By("giving them less and another image at once")
		u.apply(sized(kind, "nginx:1.21", "15m"))
		less := u.sizedPods(n, "15m")
		Expect(uids(less)).To(Equal(uids(before)))
		for name, p := range less {
			Expect(p.Spec.Containers[0].Image).To(Equal("nginx:1.21"))
			Expect(restarts(p)).To(Equal(restarts(before[name]) + 1))
		}
	},
		Entry("CloneSet", "CloneSet", SpecTimeout(6*time.Minute)),
		Entry("StatefulSet", "StatefulSet", SpecTimeout(6*time.Minute)),
		Entry("DaemonSet", "DaemonSet", SpecTimeout(6*time.Minute)),
	)

	It("restarts containers whose policy asks for it, out of their services, and recreates for another QoS class", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		policy := "resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]"
		u.apply(sized("CloneSet", "nginx:1.20", "10m", policy))
		before := u.sizedPods(2, "10m")
		u.apply(sized("CloneSet", "nginx:1.20", "20m", policy))
		after := u.sizedPods(2, "20m")
		Expect(uids(after)).To(Equal(uids(before)))
		for name, p := range after {
			Expect(outSince(p)).NotTo(Equal(outSince(before[name])))
			if shared.real { // simulated nodes restart for images only
				Expect(restarts(p)).To(Equal(restarts(before[name]) + 1))
			}
		}

		u.apply(strings.Replace(sized("CloneSet", "nginx:1.20", "20m", policy), `limits: {cpu: "2", memory: 32Mi}`, `limits: {cpu: 20m, memory: 16Mi}`, 1))
		Eventually(func() corev1.PodQOSClass {
			for name, p := range u.pods("sized") {
				if before[name] != nil {
					return ""
				}
				return p.Status.QOSClass
			}
			return ""
		}).Should(Equal(corev1.PodQOSGuaranteed))
		Eventually(u.status).WithArguments("sized").Should(Equal(settled(2)))
	}, SpecTimeout(8*time.Minute))

	It("that a node cannot do is reported, waits, and is undone in place", func(ctx SpecContext) {
		if !shared.real {
			Skip("simulated nodes have room for everything")
		}
		u := newUser(ctx)
		// Each has room for one such pod beside what runs there, and for no two.
		node := strings.Fields(u.kubectl("get", "nodes", "-l", "regatta.sh/node=real", "-o", "name"))[0]
		at := func(cpu string) string {
			return strings.Replace(sized("CloneSet", "nginx:1.20", cpu), "terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 1\n      nodeSelector: {kubernetes.io/hostname: "+strings.TrimPrefix(node, "node/")+"}", 1)
		}
		half := u.kubectl("get", node, "-o", "jsonpath={.status.allocatable.cpu}")
		var cores int
		_, err := fmt.Sscan(half, &cores)
		Expect(err).NotTo(HaveOccurred())
		u.apply(at("10m"))
		before := u.sizedPods(2, "10m")
		told := func() string {
			return u.kubectl("get", "clone", "sized", "-o", `jsonpath={.status.conditions[?(@.type=="FailedUpdate")].message}`)
		}

		By("asking for what no two pods have room for at a time")
		u.apply(strings.Replace(at(fmt.Sprintf("%dm", cores*500+50)), `limits: {cpu: "2"`, fmt.Sprintf(`limits: {cpu: "%d"`, cores), 1))
		Eventually(told).Should(MatchRegexp(`pod sized-\S+ is not updated: its node cannot give it its new resources now \(Deferred\): Node didn't have enough resource: cpu, requested: \d+`))
		Eventually(u.events).WithArguments("sized", "FailedUpdatePodInPlace").Should(ContainElement(MatchRegexp(`failed to update pod sized-\S+ in-place\(revision sized-\S+\): its node cannot give it .*Deferred`)))
		Expect(u.status("sized")).To(Equal("observed=true updated=2 available=1 updatedAvailable=1 total=2"))
		for name, p := range u.pods("sized") {
			if trouble := inplace.ResizeTrouble(p); trouble != nil {
				Expect(trouble.Reason).To(Equal(corev1.PodReasonDeferred))
				Expect(u.why("pod/" + name)).To(ContainSubstring("Node didn't have enough resource: cpu"))
			}
		}
		Consistently(func() map[string]types.UID { return uids(u.pods("sized")) }).WithTimeout(5 * time.Second).Should(Equal(uids(before)))
		undo := func() {
			GinkgoHelper()
			u.apply(at("10m"))
			after := u.sizedPods(2, "10m")
			Expect(uids(after)).To(Equal(uids(before)))
			for name, p := range after {
				Expect(restarts(p)).To(Equal(restarts(before[name])))
				Expect(outSince(p)).To(Equal(outSince(before[name])))
			}
			Eventually(told).Should(BeEmpty())
			Eventually(u.status).WithArguments("sized").Should(Equal(settled(2)))
		}
		undo()

		By("asking for what no node has")
		u.apply(strings.Replace(at("500"), `limits: {cpu: "2"`, `limits: {cpu: "500"`, 1))
		// Kubernetes 1.36 refuses it; before, the kubelet said so.
		Eventually(told).Should(Or(ContainSubstring("didn't have enough allocatable resources: cpu"), ContainSubstring("(Infeasible)")))
		undo()
	}, SpecTimeout(8*time.Minute))
})
