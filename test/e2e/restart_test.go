// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// killAgent kills the node agent of a pod with SIGKILL, and returns how many it found. Agents
// of other clusters on this machine have nodes of other addresses.
func killAgent(pod *corev1.Pod) (killed int) {
	GinkgoHelper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	Expect(err).NotTo(HaveOccurred())
	for _, folder := range folders {
		program, err := os.Readlink(filepath.Join(folder, "exe"))
		if err != nil || filepath.Base(program) != "kruise-daemon" {
			continue // it has ended, or is another program
		}
		raw, err := os.ReadFile(filepath.Join(folder, "environ"))
		env := strings.Split(string(raw), "\x00")
		if err != nil || !slices.Contains(env, "NODE_NAME="+pod.Spec.NodeName) || !slices.Contains(env, "NODE_IP="+pod.Status.HostIP) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
		killed++
	}
	return killed
}

var _ = Describe("a ContainerRecreateRequest", func() {
	pod := func(u *user) *corev1.Pod {
		GinkgoHelper()
		p := &corev1.Pod{}
		Expect(shared.k8s.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: "busybox"}, p)).To(Succeed())
		return p
	}
	runs := func(u *user) map[string]int32 {
		out := map[string]int32{}
		for _, c := range pod(u).Status.ContainerStatuses {
			if c.Ready {
				out[c.Name] = c.RestartCount
			}
		}
		return out
	}
	start := func(u *user) {
		GinkgoHelper()
		if !shared.real {
			Skip("simulated nodes have no container runtime")
		}
		u.apply(`{apiVersion: v1, kind: Pod, metadata: {name: busybox}, spec: {terminationGracePeriodSeconds: 2, containers: [
			{name: busybox, image: "busybox:1.32", command: [sleep, "36000"]},
			{name: sidecar-1, image: "busybox:1.32", command: [sleep, "36000"]},
			{name: other, image: "busybox:1.32", command: [sleep, "36000"]}]}}`)
		Eventually(runs).WithArguments(u).Should(Equal(map[string]int32{"busybox": 0, "sidecar-1": 0, "other": 0}))
	}

	It("restarts the containers that it names, as the tutorial has it", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		start(u)
		before := pod(u).UID
		u.apply(`
apiVersion: apps.kruise.io/v1alpha1
kind: ContainerRecreateRequest
metadata:
  name: busybox
spec:
  podName: busybox
  containers:
    - name: sidecar-1
    - name: busybox
  strategy:
    failurePolicy: Fail
    orderedRecreate: false
    terminationGracePeriodSeconds: 2
    unreadyGracePeriodSeconds: 3
    minStartedSeconds: 3
  activeDeadlineSeconds: 300
  ttlSecondsAfterFinished: 1800
`)
		Eventually(func() string { return u.kubectl("get", "crr", "--no-headers") }).Should(MatchRegexp(`^busybox +Completed +busybox +\S+ +\S+$`))
		Expect(runs(u)).To(Equal(map[string]int32{"busybox": 1, "sidecar-1": 1, "other": 0}))
		Expect(pod(u).UID).To(Equal(before))
		Expect(u.kubectl("get", "crr", "busybox", "-o", "jsonpath={.status.containerRecreateStates[*].phase}")).To(Equal("Succeeded Succeeded"))
		Eventually(u.kubectl).WithArguments("get", "events").Should(ContainSubstring("Stopping container sidecar-1 by ContainerRecreateRequest busybox"))
	}, SpecTimeout(8*time.Minute))

	It("stops a container soon after the request", Serial, func(ctx SpecContext) {
		u := newUser(ctx)
		start(u)
		var took []time.Duration
		for i := range int32(2) {
			since := time.Now()
			u.apply(fmt.Sprintf(`{apiVersion: apps.kruise.io/v1beta1, kind: ContainerRecreateRequest, metadata: {name: r%d}, spec: {podName: busybox, containers: [{name: other}], strategy: {terminationGracePeriodSeconds: 0}}}`, i))
			stopped := func() string {
				return u.kubectl("get", "crr", fmt.Sprintf("r%d", i), "-o", "jsonpath={.status.containerRecreateStates[*].isKilled}")
			}
			Eventually(stopped).WithPolling(50 * time.Millisecond).Should(Equal("true"))
			took = append(took, time.Since(since))
			Eventually(runs).WithArguments(u).Should(HaveKeyWithValue("other", i+1))
			Eventually(func() string { return u.kubectl("get", "crr", fmt.Sprintf("r%d", i), "-o", "jsonpath={.status.phase}") }).Should(Equal("Completed"))
		}
		slices.Sort(took)
		AddReportEntry("until a container was stopped", took)
		// The grace is 2 seconds at least, and sleep does not end by itself.
		Expect(took[0]).To(BeNumerically("<", 15*time.Second))
	}, SpecTimeout(8*time.Minute))

	It("restarts a container once though the agent is killed while its hook runs", Serial, func(ctx SpecContext) {
		if !shared.real || shared.cluster == nil {
			Skip("there is no agent to be killed")
		}
		u := newUser(ctx)
		u.apply(`{apiVersion: v1, kind: Pod, metadata: {name: busybox}, spec: {volumes: [{name: notes, emptyDir: {}}], containers: [{name: main, image: "busybox:1.32",
			command: [sh, -c, "trap 'exit 0' TERM; while true; do sleep 0.1; done"], volumeMounts: [{name: notes, mountPath: /notes}],
			lifecycle: {preStop: {exec: {command: [sh, -c, "echo hook >> /notes/ran; sleep 3"]}}}}]}}`)
		Eventually(runs).WithArguments(u).Should(Equal(map[string]int32{"main": 0}))
		ran := func() string {
			out, err := u.try("kubectl", "-n", u.namespace, "exec", "busybox", "--", "cat", "/notes/ran")
			if err != nil {
				return ""
			}
			return strings.TrimSpace(out)
		}
		u.apply(`{apiVersion: apps.kruise.io/v1beta1, kind: ContainerRecreateRequest, metadata: {name: r}, spec: {podName: busybox, containers: [{name: main}], strategy: {terminationGracePeriodSeconds: 10}}}`)
		Eventually(ran).WithPolling(50 * time.Millisecond).Should(Equal("hook"))
		Expect(killAgent(pod(u))).To(Equal(1), "agents that were killed")
		Eventually(func() string {
			return u.kubectl("get", "crr", "r", "-o", "jsonpath={.status.phase} {.status.containerRecreateStates[*].phase}")
		}).Should(Equal("Completed Succeeded"))
		Consistently(runs).WithArguments(u).WithTimeout(3 * time.Second).Should(Equal(map[string]int32{"main": 1}))
		Expect(ran()).To(Equal("hook\nhook"), "an agent that starts again runs a hook again that it does not know the end of")
	}, SpecTimeout(6*time.Minute))

	It("restarts a whole CloneSet in place, with no more pods out than may be", func(ctx SpecContext) {
		if !shared.real {
			Skip("simulated nodes have no container runtime")
		}
		u := newUser(ctx)
		u.apply(`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web}, spec: {replicas: 3, selector: {matchLabels: {app: web}},
			updateStrategy: {maxUnavailable: 1}, template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 1, containers: [
			{name: main, image: "busybox:1.32", command: [sleep, "36000"]}, {name: other, image: "busybox:1.32", command: [sleep, "36000"]}]}}}}`)
		Eventually(u.status).WithArguments("web").Should(Equal(settled(3)))
		before := u.pods("web")
		out, err := u.try("regatta", "rollout", "restart", "clone/web", "-n", u.namespace, "--in-place")
		Expect(err).NotTo(HaveOccurred(), out)
		AddReportEntry("regatta rollout restart", out)

		most := 0
		Eventually(func() []string {
			restarting := 0
			for _, p := range u.pods("web") {
				if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
					restarting++
				}
			}
			most = max(most, restarting)
			return u.events("web", "RestartedInPlace")
		}).WithPolling(100 * time.Millisecond).Should(ConsistOf("all 3 pods have restarted in place"))
		Expect(most).To(BeNumerically("<=", 1), "pods that were not ready at once")
		for name, p := range u.pods("web") {
			Expect(before).To(HaveKey(name))
			Expect(p.UID).To(Equal(before[name].UID))
			for _, c := range p.Status.ContainerStatuses {
				Expect(c.RestartCount).To(Equal(int32(1)), "%s of %s", c.Name, name)
			}
		}
		Expect(u.cloneSet("web").Annotations).NotTo(HaveKey(v1beta1.RestartInPlaceKey))
		Eventually(func() string { return u.kubectl("get", "crr") }).Should(ContainSubstring("No resources found"))
	}, SpecTimeout(8*time.Minute))

	It("recreates the pods of a CloneSet on request, also where a change in place is possible, and undoes that in place", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("web", 2, "nginx:1.20"))
		Eventually(u.status).WithArguments("web").Should(Equal(settled(2)))
		regatta := func(args ...string) string {
			GinkgoHelper()
			out, err := u.try("regatta", append(args, "-n", u.namespace)...)
			ran(err, out, "regatta", args)
			return out
		}
		before := uids(u.pods("web"))
		Expect(regatta("rollout", "restart", "clone/web")).To(Equal("cloneset.apps.kruise.io/web restarted\n"))
		regatta("rollout", "status", "clone/web", "--timeout", "2m")
		restarted := uids(u.pods("web"))
		for name := range restarted {
			Expect(before).NotTo(HaveKey(name))
		}
		Expect(strings.Split(strings.TrimSpace(regatta("rollout", "history", "clone/web")), "\n")).To(HaveLen(4), "a header, two revisions and who wrote the last one")

		By("going back to the template without the request, which is an annotation like any other then")
		Expect(regatta("rollout", "undo", "clone/web")).To(Equal("cloneset.apps.kruise.io/web rolled back\n"))
		regatta("rollout", "status", "clone/web", "--timeout", "2m")
		Expect(uids(u.pods("web"))).To(Equal(restarted))

		By("looking at what another image would do")
		Expect(regatta("set", "image", "clone/web", "*=nginx:1.21", "--preview")).To(ContainSubstring("2 pods would change in place, within "), "perhaps after a warning that a pod is not ready yet again")
		Expect(u.cloneSet("web").Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:1.20"))
	}, SpecTimeout(8*time.Minute))
})
