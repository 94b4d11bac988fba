// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/test/cluster/audit"
)

// bundle applies a ClusterPolicyBundle that goes with the spec, and waits until
// the manager has looked at it. Bundles are for the whole cluster, so they name
// the namespace they are about.
func (u *user) bundle(name string, files map[string]string, edits ...func(*policy.ClusterPolicyBundleSpec)) *policy.ClusterPolicyBundle {
	GinkgoHelper()
	b := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: name}}
	found := shared.k8s.Get(u.ctx, client.ObjectKeyFromObject(b), b) == nil
	b.Spec.Files = map[string]policy.FileText{}
	for path, text := range files {
		b.Spec.Files[path] = policy.FileText(text)
	}
	for _, edit := range edits {
		edit(&b.Spec)
	}
	if found {
		Expect(shared.k8s.Update(u.ctx, b)).To(Succeed())
	} else {
		Expect(shared.k8s.Create(u.ctx, b)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, b))).To(Succeed())
		})
	}
	Eventually(func() int64 {
		_ = shared.k8s.Get(u.ctx, client.ObjectKeyFromObject(b), b)
		return b.Status.ObservedGeneration
	}).Should(Equal(b.Generation), "the manager did not look at the bundle")
	return b
}

func example(name string) map[string]string {
	GinkgoHelper()
	dir := filepath.Join(shared.root, "policies", "examples", name)
	entries, err := os.ReadDir(dir)
	Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".rego" {
			raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
			Expect(err).NotTo(HaveOccurred())
			files[e.Name()] = string(raw)
		}
	}
	return files
}

// web is a CloneSet whose pods are updated in place.
func web(name string, replicas int, image string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: %[1]s}}}
      containers:
      - {name: nginx, image: %[3]s}
%[4]s`, name, replicas, image, strings.Join(more, "\n"))
}

// inNamespace has a bundle decide in the user's namespace alone, since other specs go on beside it.
func (u *user) inNamespace(spec *policy.ClusterPolicyBundleSpec) {
	spec.Mode, spec.Canary = policy.PolicyModeCanary, &policy.PolicyCanary{Namespaces: []string{u.namespace}}
}

var _ = Describe("policies of users", func() {
	It("freeze a namespace by its label, and let its workloads go on when the label is gone", func(ctx SpecContext) {
		u := newUser(ctx)
		u.bundle("frozen-namespaces-"+u.namespace, example("frozen-namespaces"), u.inNamespace)
		u.apply(web("shop", 2, "nginx:1.20"))
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(2)))

		u.kubectl("label", "namespace", u.namespace, "shop.example/freeze=audit")
		u.apply(web("shop", 2, "nginx:1.21"))
		Eventually(func() string {
			return u.kubectl("get", "clone", "shop", "-o", `jsonpath={.status.conditions[?(@.type=="UpdateHeld")].message}`)
		}).Should(ContainSubstring("Namespace " + u.namespace + " is frozen (label shop.example/freeze=audit)"))
		Expect(u.cloneSet("shop").Status.UpdatedReplicas).To(BeZero())
		Expect(u.why("clone/shop")).To(ContainSubstring("shop.example/freeze:audit"))

		By("removing the label, of which nothing but the namespace tells the workload")
		u.kubectl("label", "namespace", u.namespace, "shop.example/freeze-")
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(2)))
	})

	It("leave pods alone by a condition of their node, and go on when the node tells that it is over", func(ctx SpecContext) {
		u := newUser(ctx)
		condition := "shop.example/" + u.namespace // of this spec alone: the nodes are shared
		u.bundle("maintenance-"+u.namespace, map[string]string{"maintenance.rego": `package extend.rollout.maintenance_` + strings.ReplaceAll(u.namespace, "-", "_") + `
# METADATA
# title: A node in maintenance
# labels: {id: maintenance.node}
hold contains {"rule": "maintenance.node", "reason": "NodeInMaintenance", "message": sprintf("Node %s is in maintenance.", [pod.node]), "pod": pod.name} if {
	some pod in input.pods
	"` + condition + `" in pod.onNode.conditions
}
`}, u.inNamespace)
		u.apply(web("shop", 2, "nginx:1.20"))
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(2)))
		nodes := strings.Fields(u.kubectl("get", "pods", "-l", "app=shop", "-o", "jsonpath={.items[*].spec.nodeName}"))
		maintain := func(status string) {
			for _, node := range nodes {
				u.kubectl("patch", "node", node, "--subresource=status", "-p", fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Spec","message":"A spec tests it."}]}}`, condition, status))
			}
		}
		DeferCleanup(func() { maintain("False") })

		maintain("True")
		u.apply(web("shop", 2, "nginx:1.21"))
		Eventually(func() string {
			return u.kubectl("get", "clone", "shop", "-o", `jsonpath={.status.conditions[?(@.type=="UpdateHeld")].message}`)
		}).Should(ContainSubstring("is in maintenance"))
		Expect(u.cloneSet("shop").Status.UpdatedReplicas).To(BeZero())
		Expect(u.why("clone/shop")).To(ContainSubstring("maintenance.node"))

		By("ending the maintenance, of which nothing but the node tells the workload")
		maintain("False")
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(2)))
	})

	It("freeze a running rollout, say so, and let it go on", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("shop", 6, "nginx:1.20"))
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(6)))

		By("starting a rollout and freezing it in the middle")
		u.apply(web("shop", 6, "nginx:1.21"))
		Eventually(func() int { return int(u.cloneSet("shop").Status.UpdatedReplicas) }).Should(BeNumerically(">=", 1))
		b := u.bundle("freeze-"+u.namespace, map[string]string{"freeze.rego": `package extend.rollout.freeze_` + strings.ReplaceAll(u.namespace, "-", "_") + `
# METADATA
# title: Freeze
# labels: {id: freeze.all}
hold contains {"rule": "freeze.all", "reason": "Frozen", "message": "The shop is closed for stock-taking."} if input.workload.namespace == "` + u.namespace + `"
`})
		Expect(meta.IsStatusConditionTrue(b.Status.Conditions, policy.PolicyBundleReady)).To(BeTrue(), "%v", b.Status)
		Eventually(func() string {
			return u.kubectl("get", "clone", "shop", "-o", `jsonpath={.status.conditions[?(@.type=="UpdateHeld")]}`)
		}).Should(
			And(ContainSubstring(`"reason":"Frozen"`), ContainSubstring("stock-taking"), ContainSubstring("freeze.all")))
		time.Sleep(3 * time.Second) // what had begun is finished
		stopped := u.cloneSet("shop").Status.UpdatedReplicas
		Expect(stopped).To(BeNumerically("<", 6))
		Consistently(func() int32 { return u.cloneSet("shop").Status.UpdatedReplicas }).WithTimeout(5 * time.Second).Should(Equal(stopped))
		Eventually(u.events).WithArguments("shop", "UpdateHeld").Should(HaveLen(1), "one event for each reason")

		By("asking why")
		for name, pod := range u.pods("shop") {
			if pod.Spec.Containers[0].Image == "nginx:1.20" {
				Expect(u.why("pod/" + name)).To(And(ContainSubstring("Frozen"), ContainSubstring("The shop is closed for stock-taking."),
					ContainSubstring("freeze.all"), ContainSubstring("freeze-"+u.namespace)))
			}
		}
		Expect(u.why("clone/shop")).To(ContainSubstring("Frozen"))

		By("looking at the metrics of the leader")
		holder := u.kubectl("get", "lease", "-n", "kruise-system", "kruise-manager", "-o", "jsonpath={.spec.holderIdentity}")
		if leader, _, _ := strings.Cut(holder, "_"); strings.HasPrefix(leader, "kruise-controller-manager-") { // else it is no pod
			metrics := u.kubectl("get", "--raw", "/api/v1/namespaces/kruise-system/pods/"+leader+":8080/proxy/metrics")
			Expect(metrics).To(ContainSubstring(fmt.Sprintf(`regatta_rollout_held_pods{kind="CloneSet",name="shop",namespace=%q,rule="freeze.all"} %d`, u.namespace, 6-stopped)))
			Expect(metrics).To(ContainSubstring(fmt.Sprintf(`regatta_rollout_pods{kind="CloneSet",name="shop",namespace=%q,verdict="UpToDate"} %d`, u.namespace, stopped)))
		}

		By("taking the policy away")
		Expect(shared.k8s.Delete(u.ctx, b)).To(Succeed())
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(6)))
		Expect(u.kubectl("get", "clone", "shop", "-o", `jsonpath={.status.conditions[?(@.type=="UpdateHeld")].status}`)).To(Equal("False"))
	}, SpecTimeout(8*time.Minute))

	It("restart containers of pods that no Service selects by one write", func(ctx SpecContext) {
		if shared.auditLog == "" {
			Skip("the audit log of this cluster cannot be read")
		}
		u := newUser(ctx)
		b := u.bundle("ungated-"+u.namespace, map[string]string{"ungated.rego": `package extend.rollout.ungated_` + strings.ReplaceAll(u.namespace, "-", "_") + `
settings := {"readinessGate": "WhereServed"} if input.workload.namespace == "` + u.namespace + `"
`})
		Expect(meta.IsStatusConditionTrue(b.Status.Conditions, policy.PolicyBundleReady)).To(BeTrue(), "%v", b.Status)
		u.apply(web("served", 2, "nginx:1.20"))
		u.apply(web("unserved", 2, "nginx:1.20"))
		u.apply("{apiVersion: v1, kind: Service, metadata: {name: served}, spec: {ports: [{port: 80}], selector: {app: served}}}")
		for name, want := range map[string]int{"served": 3 * 2, "unserved": 2} {
			Eventually(u.status).WithArguments(name).Should(Equal(settled(2)))
			since := time.Now()
			u.apply(web(name, 2, "nginx:1.21"))
			Eventually(u.status).WithArguments(name).Should(Equal(settled(2)))
			counts, err := audit.Counts(shared.auditLog, audit.Filter{User: shared.installed.User, Namespace: u.namespace, Resource: "pods", Since: since})
			Expect(err).NotTo(HaveOccurred())
			dry := 0
			for _, c := range counts {
				dry += c.DryRuns
			}
			Expect(audit.Total(counts)-audit.Failed(counts)-dry).To(Equal(want), "writes of the pods of %s", name)
		}
	}, SpecTimeout(6*time.Minute))

	It("take one zone after the other", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("zones", 6, "nginx:1.20"))
		Eventually(u.status).WithArguments("zones").Should(Equal(settled(6)))
		u.bundle("one-zone-at-a-time", example("one-zone-at-a-time"), u.inNamespace)
		order := u.updateOrder("zones", web("zones", 6, "nginx:1.21"), func(name string) string {
			return u.pods("zones")[name].Labels["topology.kubernetes.io/zone"]
		})
		Expect(order).To(HaveLen(6))
		for i := 1; i < len(order); i++ {
			Expect(order[i-1] <= order[i]).To(BeTrue(), "zones were taken in the order %v", order)
		}
	}, SpecTimeout(8*time.Minute))

	It("take gold pods last", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("tiers", 5, "nginx:1.20"))
		Eventually(u.status).WithArguments("tiers").Should(Equal(settled(5)))
		n := 0
		for name := range u.pods("tiers") {
			if n++; n <= 2 {
				u.kubectl("label", "pod", name, "tier=gold")
			}
		}
		u.bundle("gold-last", example("gold-last"), u.inNamespace)
		order := u.updateOrder("tiers", web("tiers", 5, "nginx:1.21"), func(name string) string { return u.pods("tiers")[name].Labels["tier"] })
		Expect(order).To(Equal([]string{"", "", "", "gold", "gold"}))
	}, SpecTimeout(8*time.Minute))

	It("change nothing while they are broken, and the status says where", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("steady", 2, "nginx:1.20"))
		Eventually(u.status).WithArguments("steady").Should(Equal(settled(2)))
		// Files in the object would be refused when they are applied.
		source := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "broken-" + u.namespace},
			Data:       map[string]string{"oops.rego": "package extend.rollout.oops\n\nhold contains {\"reason\": \"R\" \"message\": 1}\n"},
		}
		Expect(shared.k8s.Create(ctx, source)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, source))).To(Succeed())
		})
		b := u.bundle(source.Name, nil, func(spec *policy.ClusterPolicyBundleSpec) {
			spec.ConfigMap = &policy.ConfigMapPolicySource{Name: source.Name}
		})
		Expect(meta.IsStatusConditionFalse(b.Status.Conditions, policy.PolicyBundleReady)).To(BeTrue())
		Expect(b.Status.Errors).To(ContainElement(MatchRegexp(`^oops\.rego:3:\d+ .+`)))
		u.apply(web("steady", 2, "nginx:1.21"))
		Eventually(u.status).WithArguments("steady").Should(Equal(settled(2)))
	}, SpecTimeout(10*time.Minute))

	It("are refused where they are broken when they are applied, and take effect once they are mended", func(ctx SpecContext) {
		u := newUser(ctx)
		name := "typo-" + u.namespace
		manifest := `apiVersion: policy.kruise.io/v1alpha1
kind: ClusterPolicyBundle
metadata: {name: ` + name + `}
spec:
  files:
    typo.rego: |
      package extend.rollout.typo_` + strings.ReplaceAll(u.namespace, "-", "_") + `

      hold contains {"reason": "Typo", "message": "This holds nothing."} if {
      	input.workload.namespace == "` + u.namespace + `"
      	input.workload.anotations.typo == "yes"
      }
`
		DeferCleanup(func(ctx SpecContext) {
			b := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, b))).To(Succeed())
		})
		const place = "spec.files[typo.rego]: Invalid value: typo.rego:5:2 rego_type_error undefined ref: input.workload.anotations.typo"
		// The API server takes a bundle that the webhook does not judge in time, such as on a busy machine.
		Eventually(func() string {
			out, err := u.pipe(manifest)
			if err == nil {
				u.kubectl("delete", "clusterpolicybundle", name)
			}
			return out
		}).Should(ContainSubstring(place))
		file := filepath.Join(GinkgoT().TempDir(), "typo.yaml")
		Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
		out, err := u.try("kubectl", "apply", "--dry-run=server", "-f", file)
		Expect(err).To(HaveOccurred(), out)
		Expect(out).To(ContainSubstring(place))
		Expect(apierrors.IsNotFound(shared.k8s.Get(ctx, client.ObjectKey{Name: name}, &policy.ClusterPolicyBundle{}))).To(BeTrue(), "it is stored")

		u.apply(strings.ReplaceAll(manifest, "anotations", "annotations"))
		u.kubectl("wait", "--for=condition=Ready", "clusterpolicybundle/"+name, "--timeout=60s")
		Expect(u.refused(manifest)).To(ContainSubstring(place), "an update is not checked")
	}, SpecTimeout(10*time.Minute))

	It("that use up all memory while they are checked are refused, and cost the manager nothing", Serial, func(ctx SpecContext) {
		if !shared.real {
			Skip("the manager runs on this machine, without a limit of memory")
		}
		u := newUser(ctx)
		before := managerRestarts(ctx)
		b := u.bundle("greedy-"+u.namespace, map[string]string{"greedy_test.rego": `package extend.rollout.greedy_test

test_long_strings if {
	long := [s | some i in numbers.range(1, 5000); s := sprintf("%0999999d", [i])]
	count(long) > 0
}
`, "greedy.rego": "package extend.rollout.greedy\n\nrank := {}\n"})
		c := meta.FindStatusCondition(b.Status.Conditions, policy.PolicyBundleReady)
		Expect(c.Status).To(Equal(metav1.ConditionFalse))
		Expect(c.Message).To(ContainSubstring("memory"))
		Expect(managerRestarts(ctx)).To(Equal(before))
	}, SpecTimeout(10*time.Minute))

	It("that never end cost no more than their deadline, hold what they were asked about, and are given up", Serial, func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("patient", 3, "nginx:1.20"))
		Eventually(u.status).WithArguments("patient").Should(Equal(settled(3)))
		pkg := "loop_" + strings.ReplaceAll(u.namespace, "-", "_")
		b := u.bundle("loop-"+u.namespace, map[string]string{"loop.rego": `package extend.rollout.` + pkg + `
hold contains {"reason": "Loop", "message": "This is never reached."} if {
	input.workload.namespace == "` + u.namespace + `"
` + endless}, u.inNamespace)
		Expect(meta.IsStatusConditionTrue(b.Status.Conditions, policy.PolicyBundleReady)).To(BeTrue(), "%v", b.Status)
		u.apply(web("patient", 3, "nginx:1.21"))
		By("rolling the bundle back after it was late too often")
		Eventually(func() string {
			_ = shared.k8s.Get(u.ctx, client.ObjectKeyFromObject(b), b)
			c := meta.FindStatusCondition(b.Status.Conditions, policy.PolicyBundleReady)
			return c.Reason
		}).Should(Equal(policy.PolicyBundleRolledBackReason))
		By("holding what it takes part in until it is deleted, since nothing was before it")
		Expect(b.Status.Withheld).NotTo(BeNil())
		Expect(u.status("patient")).NotTo(Equal(settled(3)))
		Expect(shared.k8s.Delete(u.ctx, b)).To(Succeed())
		Eventually(u.status).WithArguments("patient").Should(Equal(settled(3)))
	}, SpecTimeout(10*time.Minute))
})

// endless is the rest of a rule that is never true, and takes longer to evaluate
// than any caller waits.
const endless = `
	some a in numbers_to
	some b in numbers_to
	some c in numbers_to
	some d in numbers_to
	a + b + c + d < 0
}
numbers_to := [n | some x in digits; some y in digits; n := (x * 10) + y]
digits := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
`

// managerRestarts counts how often containers of the manager ended, by pod.
func managerRestarts(ctx context.Context) map[string]int32 {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(shared.k8s.List(ctx, list, client.InNamespace("kruise-system"), client.MatchingLabels{"control-plane": "controller-manager"})).To(Succeed())
	Expect(list.Items).NotTo(BeEmpty())
	out := map[string]int32{}
	for i := range list.Items {
		out[list.Items[i].Name] = restarts(&list.Items[i])
	}
	return out
}

// updateOrder changes a CloneSet and tells in which order its pods came to the
// new revision, by what of says of each.
func (u *user) updateOrder(name, manifest string, of func(pod string) string) []string {
	GinkgoHelper()
	about := map[string]string{}
	for pod := range u.pods(name) {
		about[pod] = of(pod)
	}
	old := u.cloneSet(name).Status.UpdateRevision
	u.apply(manifest)
	var order []string
	seen := map[string]bool{}
	Eventually(func() int {
		for pod, p := range u.pods(name) {
			if hash := p.Labels["controller-revision-hash"]; hash != old && !seen[pod] {
				seen[pod] = true
				order = append(order, about[pod])
			}
		}
		return len(order)
	}).WithPolling(50 * time.Millisecond).WithTimeout(4 * time.Minute).Should(Equal(len(about)))
	return order
}
