// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// The SidecarSet section of the tutorial, in a namespace of its own.
var _ = Describe("a SidecarSet", func() {
	// create makes one for the namespace of the user. Pods created from then on have its containers.
	create := func(u *user, containers string) (name string) {
		GinkgoHelper()
		name = "sidecars-" + u.namespace
		u.apply(fmt.Sprintf(`
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata:
  name: %s
spec:
  namespace: %s
  selector:
    matchLabels:
      app: nginx
  updateStrategy:
    type: RollingUpdate
    maxUnavailable: 1
  containers:
%s
  volumes:
    - name: log-volume
      emptyDir: {}
`, name, u.namespace, containers))
		DeferCleanup(func(ctx SpecContext) {
			set := &v1beta1.SidecarSet{}
			set.Name = name
			Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, set))).To(Succeed())
		})
		return name
	}
	status := func(u *user, name string) string {
		set := &v1beta1.SidecarSet{}
		if err := shared.k8s.Get(u.ctx, client.ObjectKey{Name: name}, set); err != nil {
			return err.Error()
		}
		s := set.Status
		return fmt.Sprintf("observed=%t matched=%d updated=%d ready=%d", s.ObservedGeneration == set.Generation, s.MatchedPods, s.UpdatedPods, s.ReadyPods)
	}
	image := func(u *user, pod, container string) string {
		p := &corev1.Pod{}
		if err := shared.k8s.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: pod}, p); err != nil {
			return err.Error()
		}
		for _, c := range p.Spec.Containers {
			if c.Name == container {
				return c.Image
			}
		}
		return "none"
	}
	patch := func(u *user, name, image string) {
		GinkgoHelper()
		u.kubectl("patch", "sidecarset", name, "--type=json", "-p", `[{"op": "replace", "path": "/spec/containers/0/image", "value": "`+image+`"}]`)
	}
	const pod = `
apiVersion: v1
kind: Pod
metadata:
  labels: {app: nginx}
  name: test-pod
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: app
      image: nginx:1.7.9
`

	It("puts a container into new pods, and updates its image in place, as the tutorial has it", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		name := create(u, `
    - name: sidecar1
      image: busybox:1.34
      command: ['sleep', '999d']
      volumeMounts:
        - name: log-volume
          mountPath: /var/log`)
		Expect(u.kubectl("get", "sidecarset", name)).To(MatchRegexp(`NAME +MATCHED +UPDATED +READY +AGE\n%s +0 +0 +0 `, name))
		file := filepath.Join(GinkgoT().TempDir(), "pod.yaml")
		Expect(os.WriteFile(file, []byte(pod), 0o600)).To(Succeed())
		preview, err := u.try("regatta", "sidecar", "preview", file, "-n", u.namespace)
		Expect(err).NotTo(HaveOccurred(), preview)
		AddReportEntry("regatta sidecar preview", preview)
		Expect(preview).To(SatisfyAll(ContainSubstring("+    image: busybox:1.34"), MatchRegexp(name+` +Latest +injection.sidecars.latest`)))
		u.apply(pod)
		Eventually(status).WithArguments(u, name).WithTimeout(2 * time.Minute).Should(Equal("observed=true matched=1 updated=1 ready=1"))
		p := u.pods("nginx")["test-pod"]
		Expect(p).NotTo(BeNil())
		Expect(p.Spec.Containers).To(HaveLen(2))
		Expect(p.Spec.Containers[0].Name).To(Equal("sidecar1"))
		Expect(p.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "IS_INJECTED", Value: "true"}))
		Expect(u.kubectl("get", "pod", "test-pod")).To(MatchRegexp(`test-pod +2/2 +Running +0 `))

		patch(u, name, "busybox:1.35.0")
		Eventually(image).WithArguments(u, "test-pod", "sidecar1").Should(Equal("busybox:1.35.0"))
		Eventually(status).WithArguments(u, name).WithTimeout(2 * time.Minute).Should(Equal("observed=true matched=1 updated=1 ready=1"))
		now := u.pods("nginx")["test-pod"]
		Expect(now.UID).To(Equal(p.UID))
		Expect(restarts(now)).To(Equal(restarts(p) + 1))
		Expect(now.Annotations["kruise.io/sidecarset-inplace-update-state"]).To(ContainSubstring(name))
	}, SpecTimeout(6*time.Minute))

	It("upgrades a hot pair in turns", func(ctx SpecContext) {
		u := newUser(ctx)
		name := create(u, `
    - name: sidecar
      image: nginx:1.24
      upgradeStrategy:
        upgradeType: HotUpgrade
        hotUpgradeEmptyImage: nginx:empty`)
		u.apply(pod)
		Eventually(status).WithArguments(u, name).WithTimeout(2 * time.Minute).Should(Equal("observed=true matched=1 updated=1 ready=1"))
		images := func() string {
			return strings.Join([]string{image(u, "test-pod", "sidecar-1"), image(u, "test-pod", "sidecar-2")}, " ")
		}
		Expect(images()).To(Equal("nginx:1.24 nginx:empty"))
		patch(u, name, "nginx:1.25")
		Eventually(images).WithTimeout(2 * time.Minute).Should(Equal("nginx:empty nginx:1.25"))
		Eventually(status).WithArguments(u, name).WithTimeout(2 * time.Minute).Should(Equal("observed=true matched=1 updated=1 ready=1"))
		Expect(u.pods("nginx")["test-pod"].Annotations["kruise.io/sidecarset-working-hotupgrade-container"]).To(Equal(`{"sidecar":"sidecar-2"}`))
	}, SpecTimeout(8*time.Minute))
})

// The section of the tutorial about the order in which containers start, with each of its
// ways to say it. The container that is to start first takes two seconds for it, and has a
// readiness probe, for which only barriers wait.
var _ = Describe("container launch priority", func() {
	for _, of := range []struct {
		by, annotation, env string
		other               bool
		barrier             string
	}{
		{"the order of the spec", "apps.kruise.io/container-launch-priority: Ordered", "", false, `{"p_-1":"true","p_0":"true"}`},
		{"the env of a container", "example.com/none: none", "env: [{name: KRUISE_CONTAINER_PRIORITY, value: '1'}], ", true, `{"p_0":"true","p_1":"true"}`},
		{"the numbers of the annotation", `apps.kruise.io/container-launch-priority: '{"sidecar": 1, "main": 2}'`, "", true, ""},
	} {
		It("starts containers by "+of.by, func(ctx SpecContext) {
			if !shared.real {
				Skip("simulated nodes start all containers at once")
			}
			containers := []string{
				`    - {name: sidecar, ` + of.env + `image: "busybox:1.32", command: [sleep, "36000"], lifecycle: {postStart: {exec: {command: [sleep, "2"]}}}, readinessProbe: {exec: {command: ["true"]}}}` + "\n",
				`    - {name: main, image: "busybox:1.32", command: [sleep, "36000"]}` + "\n",
			}
			if of.other { // than the order of the spec, by which the kubelet starts them itself
				slices.Reverse(containers)
			}
			u := newUser(ctx)
			u.apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: ordered
  labels: {app: ordered}
  annotations:
    %s
spec:
  terminationGracePeriodSeconds: 1
  containers:
%s`, of.annotation, strings.Join(containers, "")))
			u.kubectl("wait", "--for=condition=Ready", "pod/ordered", "--timeout=180s")
			started := map[string]time.Time{}
			for _, c := range u.pods("ordered")["ordered"].Status.ContainerStatuses {
				Expect(c.State.Running).NotTo(BeNil())
				started[c.Name] = c.State.Running.StartedAt.Time
			}
			AddReportEntry("started", fmt.Sprintf("sidecar %s, main %s", started["sidecar"].Format(time.TimeOnly), started["main"].Format(time.TimeOnly)))
			Expect(started["main"]).To(BeTemporally(">=", started["sidecar"].Add(time.Second)), "times are whole seconds")
			Eventually(u.kubectl).WithArguments("get", "pod", "ordered", "-o", "yaml").Should(ContainSubstring(`apps.kruise.io/container-launch-priority-completed: "true"`))
			data := u.kubectl("get", "configmap", "ordered-barrier", "-o", "jsonpath={.data}")
			if of.barrier != "" {
				Expect(data).To(Equal(of.barrier))
			}
		}, SpecTimeout(10*time.Minute))
	}

	It("starts containers as native sidecars where that is the same order, with no ConfigMap", func(ctx SpecContext) {
		if !shared.real {
			Skip("simulated nodes start all containers at once")
		}
		u := newUser(ctx)
		u.apply(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: native
spec:
  selector:
    matchLabels: {app: native}
  template:
    metadata:
      labels: {app: native}
      annotations:
        apps.kruise.io/container-launch-priority: '{"logs": 2, "proxy": 1, "main": 3, "last": 3}'
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - {name: main, image: "busybox:1.32", command: [sleep, "36000"], readinessProbe: {exec: {command: ["true"]}}}
        - {name: logs, image: "busybox:1.32", command: [sleep, "36000"], lifecycle: {postStart: {exec: {command: [sleep, "2"]}}}}
        - {name: proxy, image: "busybox:1.32", command: [sh, -c, "sleep 2; touch /up; sleep 36000"], startupProbe: {exec: {command: [cat, /up]}, periodSeconds: 1}}
        - {name: last, image: "busybox:1.32", command: [sleep, "36000"], lifecycle: {postStart: {exec: {command: ["true"]}}}}
`)
		u.kubectl("wait", "--for=condition=Available", "deployment/native", "--timeout=180s")
		var pod *corev1.Pod
		for _, p := range u.pods("native") {
			pod = p
		}
		Expect(pod).NotTo(BeNil())
		started := map[string]time.Time{}
		var lines []string
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			Expect(s.State.Running).NotTo(BeNil(), s.Name)
			started[s.Name] = s.State.Running.StartedAt.Time
			lines = append(lines, s.Name+" "+started[s.Name].Format(time.TimeOnly))
		}
		AddReportEntry("started", strings.Join(lines, ", "))
		Expect(lines).To(HaveLen(4))
		Expect(pod.Status.InitContainerStatuses).To(HaveLen(2))
		Expect(started["logs"]).To(BeTemporally(">=", started["proxy"].Add(time.Second)), "times are whole seconds")
		Expect(started["main"]).To(BeTemporally(">=", started["logs"].Add(time.Second)))
		Expect(started["last"]).To(BeTemporally(">=", started["main"]))
		Expect(u.kubectl("get", "pod", pod.Name)).To(MatchRegexp(pod.Name + ` +4/4 +Running +0 `))
		Expect(strings.Fields(u.kubectl("get", "configmaps", "-o", "name"))).To(Equal([]string{"configmap/kube-root-ca.crt"}))
		Expect(u.kubectl("logs", pod.Name, "-c", "proxy")).To(BeEmpty())
	}, SpecTimeout(10*time.Minute))
})
