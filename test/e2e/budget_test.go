// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployment is a Deployment of the API server's own kind, with pods that go at once.
func deployment(name string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: nginx, image: nginx:1.20}
`, name, replicas)
}

// budget is a PodUnavailableBudget of what a line says.
func budget(version, name, of, bound string) string {
	return fmt.Sprintf(`
apiVersion: policy.kruise.io/%s
kind: PodUnavailableBudget
metadata: {name: %s}
spec:
  %s
  %s
`, version, name, of, bound)
}

// budget is how a budget stands: allowed, current, desired, total.
func (u *user) budget(name string) string {
	GinkgoHelper()
	return u.kubectl("get", "pub", name, "-o", "jsonpath={.status.unavailableAllowed} {.status.currentAvailable} {.status.desiredAvailable} {.status.totalReplicas}")
}

// names are those of the pods of an app that are not on their way out.
func (u *user) names(app string) []string {
	GinkgoHelper()
	var out []string
	for name := range u.pods(app) {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// denied runs kubectl, wants it to be refused, and returns what it prints.
func (u *user) denied(args ...string) string {
	GinkgoHelper()
	out, err := u.try("kubectl", append([]string{"-n", u.namespace}, args...)...)
	Expect(err).To(HaveOccurred(), "kubectl %s\n%s", strings.Join(args, " "), out)
	Expect(out).To(ContainSubstring("denied the request"), "kubectl %s", strings.Join(args, " "))
	show("kubectl "+strings.Join(args, " "), out)
	return out
}

// show adds what a user sees to the report.
func show(command, out string) {
	AddReportEntry(command, out, ReportEntryVisibilityAlways)
}

// requestOf is the UID that a refusal ends with.
func requestOf(out string) string {
	GinkgoHelper()
	found := regexp.MustCompile(`regatta why --request ([-0-9a-f]{36})`).FindStringSubmatch(out)
	Expect(found).To(HaveLen(2), out)
	return found[1]
}

func (u *user) evict(name string) error {
	return shared.k8s.SubResource("eviction").Create(u.ctx, u.pods(strings.Split(name, "-")[0])[name], &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name},
	})
}

var _ = Describe("a PodUnavailableBudget", func() {
	It("lets pods go as far as it allows, and says why no further", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(deployment("web", 4))
		u.apply(budget("v1beta1", "web", "targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}", "maxUnavailable: 25%"))
		Eventually(u.budget).WithArguments("web").Should(Equal("1 4 3 4"))
		show("kubectl get pub", u.kubectl("get", "pub"))
		pods := u.names("web")
		Expect(u.kubectl("get", "pod", pods[0], "-o", `jsonpath={.metadata.annotations.kruise\.io/related-pub} {.metadata.annotations.pub\.kruise\.io/related-pub}`)).To(Equal("web web"))

		By("deleting one more than it allows")
		u.kubectl("delete", "pod", pods[0], "--wait=false")
		out := u.denied("delete", "pod", pods[1])
		Expect(out).To(And(
			ContainSubstring("Error from server (Forbidden)"),
			ContainSubstring(`podunavailablebudget.policy.kruise.io "web" is forbidden: pub unavailable allowed is negative`),
			ContainSubstring("maxUnavailable 25%"), ContainSubstring("kubectl get pub web -n "+u.namespace),
		))
		Expect(apierrors.IsTooManyRequests(u.evict(pods[2]))).To(BeTrue(), "who drains a node has to try again")
		Eventually(u.events).WithArguments(pods[1], "PubPreventPodDeletion").ShouldNot(BeEmpty())

		By("asking why, by the object, the request and the user")
		for _, args := range [][]string{{"pod/" + pods[1]}, {"--request", requestOf(out)}} {
			why := u.why(args...)
			show("regatta why "+strings.Join(args, " "), why)
			Expect(why).To(And(ContainSubstring("DELETE of Pod "+u.namespace+"/"+pods[1]+" was REFUSED (BudgetExceeded)"),
				ContainSubstring("protection.budget.exceeded"), ContainSubstring("allowed:0")))
		}
		Expect(u.why("--user-name", u.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"))).To(ContainSubstring(pods[1]))
		out, err := u.try("regatta", "why", "foo/bar")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring(`the cluster has no kind "foo"; kubectl api-resources lists those it has`))

		By("waiting until another pod is available")
		Eventually(u.budget).WithArguments("web").Should(Equal("1 4 3 4"))
		Eventually(u.evict).WithArguments(pods[1]).Should(Succeed())
	}, SpecTimeout(10*time.Minute))

	It("protects the pods of a CloneSet, in the old version and by a selector", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(web("clones", 3, "nginx:1.20"))
		Eventually(u.status).WithArguments("clones").Should(Equal(settled(3)))
		u.apply(budget("v1alpha1", "clones", "selector: {matchLabels: {app: clones}}", "minAvailable: 2"))
		Eventually(u.budget).WithArguments("clones").Should(Equal("1 3 2 3"))
		pods := u.names("clones")
		u.kubectl("delete", "pod", pods[0], "--wait=false")
		u.denied("delete", "pod", pods[1])

		By("letting go what is not protected")
		u.kubectl("annotate", "pod", pods[1], "pub.kruise.io/no-protect=true")
		u.kubectl("delete", "pod", pods[1], "--wait=false")
		Eventually(u.budget).WithArguments("clones").Should(Equal("1 3 2 3"))
		u.apply(budget("v1alpha1", "clones", "selector: {matchLabels: {app: clones}}", "maxUnavailable: 100%"))
		Eventually(u.budget).WithArguments("clones").Should(Equal("3 3 0 3"))
		for _, name := range u.names("clones") {
			u.kubectl("delete", "pod", name, "--wait=false")
		}
	}, SpecTimeout(10*time.Minute))

	It("is switched off for a namespace by one command, and on again", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(deployment("web", 2))
		u.apply(budget("v1beta1", "web", "selector: {matchLabels: {app: web}}", "maxUnavailable: 0"))
		Eventually(u.budget).WithArguments("web").Should(Equal("0 2 2 2"))
		u.denied("delete", "pod", u.names("web")[0])
		u.kubectl("label", "namespace", u.namespace, "policy.kruise.io/protection=off")
		Eventually(func() error {
			_, err := u.try("kubectl", "-n", u.namespace, "delete", "pod", u.names("web")[0], "--wait=false")
			return err
		}).Should(Succeed())
		u.kubectl("label", "namespace", u.namespace, "policy.kruise.io/protection-")
		Eventually(u.budget).WithArguments("web").Should(Equal("0 2 2 2"))
		Eventually(func() string {
			out, _ := u.try("kubectl", "-n", u.namespace, "delete", "pod", u.names("web")[0], "--wait=false", "--dry-run=server")
			return out
		}).Should(ContainSubstring("denied the request"))
	}, SpecTimeout(10*time.Minute))

	It("gives way to who may break the glass, with a reason, and everybody can see it", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(deployment("web", 2))
		u.apply(budget("v1beta1", "web", "selector: {matchLabels: {app: web}}", "maxUnavailable: 0"))
		Eventually(u.budget).WithArguments("web").Should(Equal("0 2 2 2"))
		u.bundle("glass-"+u.namespace, map[string]string{"glass.rego": `package extend.protection.glass
settings := {"breakGlass": {"users": ["firefighter"]}}
`})
		pod := u.names("web")[0]
		as := []string{"--as=firefighter", "--as-group=system:masters"}
		u.denied(append(as, "delete", "pod", pod, "--wait=false")...)
		u.kubectl("annotate", "pod", pod, "policy.kruise.io/break-glass=the disk of its node is on fire")
		Expect(u.denied("delete", "pod", pod, "--wait=false")).To(ContainSubstring("policy.kruise.io/break-glass"), "another user")
		var out string
		Eventually(func() (err error) { // each replica takes the bundle in by itself
			out, err = u.try("kubectl", append(as, "-n", u.namespace, "delete", "pod", pod, "--wait=false")...)
			return err
		}).Should(Succeed())
		show("kubectl delete pod "+pod, out)
		Expect(out).To(ContainSubstring("the disk of its node is on fire"))
		Eventually(u.events).WithArguments(pod, "BreakGlass").ShouldNot(BeEmpty())
		Expect(u.why("pod/" + pod)).To(And(ContainSubstring("EXEMPTED"), ContainSubstring("firefighter")))
	}, SpecTimeout(10*time.Minute))
})

var _ = Describe("rules of users about deletions", func() {
	pods := func(u *user, n int, labels string) {
		for i := range n {
			u.apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: one-%d, labels: {app: one, %s}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: nginx, image: nginx:1.20}]
`, i, labels))
		}
	}

	It("keep gold pods on the day that they say", func(ctx SpecContext) {
		u := newUser(ctx)
		pods(u, 2, "shop.example/tier: gold")
		files := example("gold-fridays")
		now := time.Now().UTC()
		if midnight := now.Truncate(24 * time.Hour).Add(24 * time.Hour); midnight.Sub(now) < 2*time.Minute {
			time.Sleep(midnight.Sub(now)) // or the day ends before the rule is asked
			now = midnight
		}
		today := now.Weekday().String()
		for path, text := range files {
			files[path] = strings.NewReplacer("Friday", today, "Europe/Berlin", "UTC").Replace(text)
			if strings.HasSuffix(path, "_test.rego") {
				delete(files, path) // they are of a Friday
			}
		}
		u.bundle("gold-fridays", files)
		Eventually(func() string {
			out, _ := u.try("kubectl", "-n", u.namespace, "delete", "pod", "one-0", "--dry-run=server")
			return out
		}).Should(ContainSubstring("denied the request"))
		out := u.denied("delete", "pod", "one-0")
		Expect(out).To(ContainSubstring(today))
		Expect(u.why("pod/one-0")).To(ContainSubstring("REFUSED"))
		u.kubectl("label", "pod", "one-1", "shop.example/tier-")
		u.kubectl("delete", "pod", "one-1", "--wait=false")
	}, SpecTimeout(6*time.Minute))

	It("break the circuit when too many go", Serial, func(ctx SpecContext) {
		u := newUser(ctx)
		pods(u, 24, "shop: web")
		u.bundle("delete-breaker", example("delete-breaker"))
		Eventually(func() string {
			return u.kubectl("get", "validatingwebhookconfiguration", "kruise-protection-webhook-configuration", "-o", "yaml")
		}).Should(ContainSubstring("vpod.kb.io"))
		went, last := 0, ""
		for i := range 24 {
			out, err := u.try("kubectl", "-n", u.namespace, "delete", "pod", fmt.Sprintf("one-%d", i), "--wait=false")
			if err != nil {
				last = out
				break
			}
			went++
		}
		show("kubectl delete pod", last)
		Expect(last).To(ContainSubstring("denied the request"))
		Expect(went).To(BeNumerically("~", 20, 2), "another replica hears of a deletion a moment later")
	}, SpecTimeout(8*time.Minute))

	It("protect a kind that no release knew", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(`
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, labels: {policy.kruise.io/delete-protection: Always}}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: nginx, image: nginx:1.20}]}}}}
`)
		dry := func(ctx context.Context) error {
			return shared.k8s.Delete(ctx, u.object("batch/v1", "CronJob", "nightly"), client.DryRunAll)
		}
		Expect(dry(ctx)).To(Succeed())
		u.bundle("protect-cronjobs", example("protect-cronjobs"))
		Eventually(dry).WithContext(ctx).ShouldNot(Succeed())
		u.denied("delete", "cronjob", "nightly")
		u.kubectl("label", "cronjob", "nightly", "policy.kruise.io/delete-protection-")
		u.kubectl("delete", "cronjob", "nightly")
	}, SpecTimeout(6*time.Minute))
})
