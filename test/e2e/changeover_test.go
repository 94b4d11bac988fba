// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/openkruise"
)

// An installation goes to the chart with OpenKruise's objects and comes back, while
// workloads are in the middle of rollouts. There is no manager of OpenKruise: while its
// release is installed, nothing acts. It takes over a minute, as the agents of three nodes are
// replaced one by one, twice.
var _ = Describe("a change over between Regatta and OpenKruise", Serial, func() {
	const workloads = `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: %[2]d, maxUnavailable: 1}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "%[1]s"}]}
---
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: %[2]d}}
  template:
    metadata: {labels: {app: db}}
    spec: {terminationGracePeriodSeconds: 1, readinessGates: [{conditionType: InPlaceUpdateReady}], containers: [{name: main, image: "%[1]s"}]}
---
apiVersion: apps.kruise.io/v1beta1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: InPlaceIfPossible, partition: %[2]d}}
  template:
    metadata: {labels: {app: agent}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "%[1]s"}]}
`
	// running is each pod with its UID, its image and how often its container was started.
	running := func(u *user) []string {
		GinkgoHelper()
		list := &corev1.PodList{}
		Expect(shared.k8s.List(u.ctx, list, client.InNamespace(u.namespace))).To(Succeed())
		var out []string
		for i := range list.Items {
			p := &list.Items[i]
			for _, c := range p.Status.ContainerStatuses {
				out = append(out, fmt.Sprintf("%s %s %s restarts=%d ready=%t", p.Name, p.UID, p.Spec.Containers[0].Image, c.RestartCount, c.Ready))
			}
		}
		return out
	}
	// images counts the pods by their images. A container has restarted once where its image was
	// changed: the spec of a pod has the new image before.
	images := func(u *user) map[string]int {
		out := map[string]int{}
		for _, line := range running(u) {
			f := strings.Fields(line)
			app, _, _ := strings.Cut(f[0], "-")
			out[app+" "+f[2]+" "+f[3]+" "+f[4]]++
		}
		return out
	}

	It("restarts nothing, and rollouts go on", func(ctx SpecContext) {
		if shared.installed.Endpoint != "" || !shared.real {
			Skip("the manager runs outside of the cluster")
		}
		u := newUser(ctx)
		u.apply(fmt.Sprintf(workloads, "nginx:1.20", 0))
		Eventually(images).WithArguments(u).Should(Equal(map[string]int{"web nginx:1.20 restarts=0 ready=true": 3, "db nginx:1.20 restarts=0 ready=true": 2, "agent nginx:1.20 restarts=0 ready=true": 3}))
		u.apply(fmt.Sprintf(workloads, "nginx:1.21", 1))
		half := map[string]int{
			"web nginx:1.20 restarts=0 ready=true": 1, "web nginx:1.21 restarts=1 ready=true": 2, "db nginx:1.20 restarts=0 ready=true": 1, "db nginx:1.21 restarts=1 ready=true": 1,
			"agent nginx:1.20 restarts=0 ready=true": 1, "agent nginx:1.21 restarts=1 ready=true": 2,
		}
		Eventually(images).WithArguments(u).Should(Equal(half))
		Eventually(u.status).WithArguments("web").Should(Equal("observed=true updated=2 available=3 updatedAvailable=2 total=3"))
		before := running(u)

		values := filepath.Join(GinkgoT().TempDir(), "values.json")
		text := u.helm("get", "values", "kruise", "-o", "json")
		Expect(json.Valid([]byte(text))).To(BeTrue(), text)
		Expect(os.WriteFile(values, []byte(text), 0o600)).To(Succeed())
		var set struct {
			Manager struct{ Image struct{ Tag string } }
		}
		Expect(json.Unmarshal([]byte(text), &set)).To(Succeed())
		over := func(command ...string) { // with the image of these sources, whose tag no registry has
			command = append(command, "-f", values, "--set", "manager.image.tag="+set.Manager.Image.Tag, "--wait", "--timeout", "3m")
			if out, err := u.try("helm", command...); err != nil {
				told, _ := u.try("kubectl", "logs", "-n", "kruise-system", "job/kruise-upgrade-check")
				Fail(fmt.Sprintf("helm %v: %v: %s\nthe check before the upgrade says: %s", command, err, out, told))
			}
			u.kubectl("rollout", "status", "-n", "kruise-system", "deployment/kruise-controller-manager", "--timeout=3m")
			u.kubectl("rollout", "status", "-n", "kruise-system", "daemonset/kruise-daemon", "--timeout=3m")
		}
		theirs := true                           // until the change over is done
		DeferCleanup(func(ctx context.Context) { // what comes next needs a manager
			if u.ctx = ctx; theirs {
				over("upgrade", "kruise", "charts/kruise")
			}
		})

		By("going back to OpenKruise")
		u.helm("upgrade", "kruise", openkruise.Chart(GinkgoTB()), "--reset-values", "--wait", "--timeout", "3m",
			"--set", "manager.image.repository=nginx,manager.image.tag=1.20", "--set-string", "manager.command={sh,-c,sleep 1000000}")
		u.kubectl("rollout", "status", "-n", "kruise-system", "deployment/kruise-controller-manager", "--timeout=3m")
		Expect(running(u)).To(Equal(before))
		for _, kind := range []string{"validatingadmissionpolicies", "validatingwebhookconfigurations", "clusterroles"} {
			Eventually(u.kubectl).WithArguments("get", kind, "-o", "name").ShouldNot(Or(
				ContainSubstring("kruise-deletion-protection"), ContainSubstring("kruise-protection-webhook"), ContainSubstring("kruise-decisions-reader")))
		}

		By("trying the values that documents of OpenKruise give, before preflight is asked")
		const mirror = "openkruise-registry.cn-shanghai.cr.aliyuncs.com/openkruise/kruise-manager"
		installed := func() (out string) {
			for _, object := range []string{"deployment/kruise-controller-manager", "daemonset/kruise-daemon", "mutatingwebhookconfiguration/kruise-mutating-webhook-configuration", "validatingwebhookconfiguration/kruise-validating-webhook-configuration"} {
				out += u.kubectl("get", "-n", "kruise-system", object, "-o", "jsonpath={.metadata.generation}") + " "
			}
			return out
		}
		for _, tc := range []struct{ set, refusal, reused string }{
			// Each tag is one that no registry has an image of Regatta for: the check before the upgrade cannot start.
			{"manager.image.tag=v1.7.1", "pre-upgrade hooks failed", "--reset-then-reuse-values"},
			{"manager.image.repository=nginx,manager.image.tag=1.20,manager.metrics.port=8081", "pre-upgrade hooks failed", "--reset-then-reuse-values"},
			{"manager.unknown=1", "additional properties 'unknown' not allowed", "additional properties 'unknown' not allowed"},
			{"manager.image.repository=" + mirror + ",manager.image.tag=v1.7.1,manager.resyncPeriod=0", mirror + " is an image of OpenKruise", "--reset-then-reuse-values"},
		} {
			u.helm("upgrade", "kruise", openkruise.Chart(GinkgoTB()), "--reset-values", "--set", tc.set)
			old := installed()
			out, err := u.try("helm", "upgrade", "kruise", "charts/kruise", "--timeout", "8s")
			Expect(err).To(HaveOccurred(), out)
			Expect(out).To(ContainSubstring(tc.refusal))
			out, err = u.try("helm", "upgrade", "kruise", "charts/kruise", "--reuse-values", "--timeout", "8s")
			Expect(err).To(HaveOccurred(), out)
			Expect(out).To(ContainSubstring(tc.reused))
			Expect(installed()).To(Equal(old), "with %s", tc.set)
		}
		Expect(running(u)).To(Equal(before))

		By("looking what will be different")
		out, err := u.try("regatta", "preflight")
		Expect(err).To(MatchError(ContainSubstring("exit status 1")), out)
		Expect(out).To(MatchRegexp(`Blocks +Release default/kruise +manager.image.repository +%s +refused`, mirror))
		Expect(strings.Count(out, "Blocks")).To(Equal(1), out)
		Expect(out).To(MatchRegexp(`Note +CloneSet %s/web +status +2 of 3 pods updated +goes on from there`, u.namespace))
		_, line, ok := strings.Cut(out, "Change over with: helm ")
		Expect(ok).To(BeTrue(), out)
		line, _, _ = strings.Cut(line, "\n")
		Expect(line).To(Equal("upgrade kruise charts/kruise --namespace default --reset-then-reuse-values --set manager.image.repository=null --set manager.image.tag=null"))

		By("changing over with its command")
		over(strings.Fields(line)...)
		theirs = false
		Expect(running(u)).To(Equal(before))
		Consistently(running, "5s").WithArguments(u).Should(Equal(before))

		By("going on")
		u.apply(fmt.Sprintf(workloads, "nginx:1.21", 0))
		Eventually(images).WithArguments(u).Should(Equal(map[string]int{"web nginx:1.21 restarts=1 ready=true": 3, "db nginx:1.21 restarts=1 ready=true": 2, "agent nginx:1.21 restarts=1 ready=true": 3}))
		uid := func(lines []string) (out []string) {
			for _, line := range lines {
				out = append(out, strings.Join(strings.Fields(line)[:2], " "))
			}
			return out
		}
		Expect(uid(running(u))).To(Equal(uid(before)))
	}, SpecTimeout(10*time.Minute))
})
