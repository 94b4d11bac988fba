// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
)

var _ = Describe("an env that reads an annotation", func() {
	const color = "shop.example/color"
	// painted is a CloneSet whose containers print an annotation of their pod as they begin.
	painted := func(name, value, image string, containers ...string) string {
		var text strings.Builder
		fmt.Fprintf(&text, `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly, maxUnavailable: 1}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {%[2]s: %[3]s}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
`, name, color, value)
		for _, c := range containers {
			fmt.Fprintf(&text, `
      - name: %s
        image: %s
        command: [sh, -c, 'echo "begins with $COLOR"; sleep 36000']
        env: [{name: COLOR, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['%s']"}}}]
`, c, image, color)
		}
		text.WriteString("      - {name: plain, image: 'busybox:1.32', command: [sleep, '36000']}\n")
		return text.String()
	}
	// runs is what the containers of a pod run, by the node agent and by the kubelet: a
	// word that it is written for each, and how often the container was restarted.
	runs := func(pod *corev1.Pod) map[string]string {
		out := map[string]string{}
		for i := range pod.Status.ContainerStatuses {
			st := &pod.Status.ContainerStatuses[i]
			told, ok := runtimemeta.ContainerMeta(pod, st)
			switch {
			case !ok:
				out[st.Name] = "not told"
			case told.RestartCount != st.RestartCount:
				out[st.Name] = fmt.Sprintf("told %d restarts of %d", told.RestartCount, st.RestartCount)
			default:
				for j := range pod.Spec.Containers {
					c := &pod.Spec.Containers[j]
					if c.Name == st.Name {
						out[st.Name] = fmt.Sprintf("restarts %d, env as wanted %t, spec as wanted %t", st.RestartCount,
							told.Hashes.ExtractedEnvFromMetadataHash == runtimemeta.ExpectedEnvHash(pod, c), runtimemeta.PlainHashes(c)[0] == told.Hashes.PlainHash)
					}
				}
			}
		}
		return out
	}
	as := func(restarts int) string {
		return fmt.Sprintf("restarts %d, env as wanted true, spec as wanted true", restarts)
	}
	all := func(u *user, name string) map[string]map[string]string {
		out := map[string]map[string]string{}
		for pod, p := range u.pods(name) {
			out[pod] = runs(p)
		}
		return out
	}
	start := func(u *user, name string, containers ...string) map[string]*corev1.Pod {
		GinkgoHelper()
		if !shared.real {
			Skip("simulated nodes have no container runtime")
		}
		u.apply(painted(name, "blue", "busybox:1.32", containers...))
		Eventually(u.status).WithArguments(name).Should(Equal(settled(2)))
		want := map[string]string{"plain": as(0)}
		for _, c := range containers {
			want[c] = as(0)
		}
		Eventually(all).WithArguments(u, name).Should(HaveEach(Equal(want)), "the node agent tells of each run")
		return u.pods(name)
	}
	// reads is what the containers of all pods read, by exec and by their log.
	reads := func(u *user, name, container, value string) {
		GinkgoHelper()
		for pod := range u.pods(name) {
			Expect(u.kubectl("exec", pod, "-c", container, "--", "sh", "-c", "echo $COLOR")).To(Equal(value))
			Expect(u.kubectl("logs", pod, "-c", container)).To(Equal("begins with " + value))
		}
	}
	same := func(u *user, name string, before map[string]*corev1.Pod, want map[string]string) {
		GinkgoHelper()
		for pod, p := range u.pods(name) {
			Expect(before).To(HaveKey(pod))
			Expect(p.UID).To(Equal(before[pod].UID))
			Expect(runs(p)).To(Equal(want))
		}
	}

	It("is refreshed in place where nothing but the annotation changes", func(ctx SpecContext) {
		u := newUser(ctx)
		before := start(u, "paint", "main")
		u.apply(painted("paint", "red", "busybox:1.32", "main"))
		Eventually(u.status).WithArguments("paint").Should(Equal(settled(2)))
		same(u, "paint", before, map[string]string{"main": as(1), "plain": as(0)})
		reads(u, "paint", "main", "red")
		for pod, p := range before {
			st := p.Status.ContainerStatuses
			for i := range st {
				if st[i].Name == "main" {
					Eventually(u.events).WithArguments(pod, "Killing").Should(ContainElement("Stopping containerID " + st[i].ContainerID + " by container meta restarter"))
				}
			}
		}
	}, SpecTimeout(10*time.Minute))

	It("is refreshed by one restart where the image changes too", func(ctx SpecContext) {
		u := newUser(ctx)
		before := start(u, "repaint", "main")
		u.apply(painted("repaint", "red", "busybox:1.33", "main"))
		Eventually(u.status).WithArguments("repaint").Should(Equal(settled(2)))
		Eventually(all).WithArguments(u, "repaint").Should(HaveEach(Equal(map[string]string{"main": as(1), "plain": as(0)})))
		same(u, "repaint", before, map[string]string{"main": as(1), "plain": as(0)})
		reads(u, "repaint", "main", "red")
	}, SpecTimeout(10*time.Minute))

	It("is refreshed in all containers that read it, and again for each value", func(ctx SpecContext) {
		u := newUser(ctx)
		before := start(u, "mural", "main", "side")
		for i, value := range []string{"red", "green"} {
			u.apply(painted("mural", value, "busybox:1.32", "main", "side"))
			Eventually(u.status).WithArguments("mural").Should(Equal(settled(2)))
			same(u, "mural", before, map[string]string{"main": as(i + 1), "side": as(i + 1), "plain": as(0)})
			reads(u, "mural", "main", value)
			reads(u, "mural", "side", value)
		}
	}, SpecTimeout(10*time.Minute))
})
