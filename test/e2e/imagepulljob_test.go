// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/policies"
)

var _ = Describe("an ImagePullJob", func() {
	start := func(ctx SpecContext) (*user, []string) {
		GinkgoHelper()
		u := newUser(ctx)
		if !shared.real {
			Skip("simulated nodes have no container runtime")
		}
		nodes := strings.Fields(u.kubectl("get", "nodes", "-l", "kubernetes.io/os=linux", "-o", "jsonpath={.items[*].metadata.name}"))
		Eventually(func() []string {
			return strings.Fields(u.kubectl("get", "nodeimages", "-o", "jsonpath={.items[*].metadata.name}"))
		}).Should(ContainElements(nodes))
		return u, nodes
	}
	// asked are the nodes that have a tag of an image to pull.
	asked := func(u *user, image, tag string) []string {
		out := strings.Split(u.kubectl("get", "nodeimages", "-o", `jsonpath={range .items[*]}{.metadata.name}{" "}{.spec.images.`+image+`.tags[?(@.tag=="`+tag+`")].tag}{"\n"}{end}`), "\n")
		var with []string
		for _, line := range out {
			if name, found, _ := strings.Cut(line, " "); strings.TrimSpace(found) != "" {
				with = append(with, name)
			}
		}
		return with
	}

	It("has each node pull an image, as the tutorial has it", Label("smoke"), func(ctx SpecContext) {
		u, nodes := start(ctx)
		since := time.Now()
		u.apply(`
apiVersion: apps.kruise.io/v1alpha1
kind: ImagePullJob
metadata:
  name: job-with-always
spec:
  image: nginx:1.9.1
  parallelism: 10
  selector:
    matchLabels:
      kubernetes.io/os: linux
  completionPolicy:
    type: Always
    activeDeadlineSeconds: 1200
    ttlSecondsAfterFinished: 300
  pullPolicy:
    backoffLimit: 3
    timeoutSeconds: 300
`)
		status := func(path string) func() string {
			return func() string { return u.kubectl("get", "imagepulljob", "job-with-always", "-o", "jsonpath={"+path+"}") }
		}
		Eventually(status(".status.message")).Should(Equal("job has completed"))
		AddReportEntry("until all nodes had the image", time.Since(since))
		Expect(status(".status.desired")()).To(Equal(status(".status.succeeded")()))
		Expect(u.kubectl("get", "imagepulljobs.v1alpha1.apps.kruise.io")).To(MatchRegexp(`NAME +TOTAL +ACTIVE +SUCCEED +FAILED +AGE +MESSAGE\njob-with-always +3 +0? +3 +0? +\S+ +job has completed`))
		Expect(asked(u, "nginx", "1.9.1")).To(ConsistOf(nodes))
		By("leaving nothing behind")
		u.kubectl("delete", "imagepulljob", "job-with-always")
		Eventually(func() []string { return asked(u, "nginx", "1.9.1") }).Should(BeEmpty())
	}, SpecTimeout(8*time.Minute))

	It("goes on past a node that cannot pull, and waits while a rule of its namespace holds it", func(ctx SpecContext) {
		u, nodes := start(ctx)
		none := "nginx@sha256:" + strings.Repeat("0", 64) // no image has this digest
		u.apply(`{apiVersion: policy.kruise.io/v1alpha1, kind: PolicyBundle, metadata: {name: hours}, spec: {files: {hours.rego: "package extend.node.hours\n\nimport future.keywords.not\n\nhold contains {\"reason\": \"OfficeHours\", \"message\": sprintf(\"%s waits for the evening.\", [input.job.name])} if not input.job.labels.evening\n"}}}`)
		Eventually(func() string {
			return u.kubectl("get", "policybundle", "hours", "-o", "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}")
		}).Should(Equal("True"))
		u.apply(`{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, metadata: {name: missing}, spec: {image: "` + none + `", parallelism: 1, selector: {names: [` + nodes[0] + `]}, pullPolicy: {backoffLimit: 0, timeoutSeconds: 5}, completionPolicy: {type: Always}}}`)
		held := func() string {
			return u.kubectl("get", "imagepulljob", "missing", "-o", `jsonpath={.status.conditions[?(@.type=="PullHeld")].message}`)
		}
		Eventually(held).Should(HavePrefix("missing waits for the evening."))
		Expect(u.kubectl("get", "imagepulljob", "missing", "-o", "jsonpath={.status.active}{.status.message}")).To(HaveSuffix("job is running, no progress"))
		u.kubectl("label", "imagepulljob", "missing", "evening=true")
		Eventually(func() string {
			return u.kubectl("get", "imagepulljob", "missing", "-o", "jsonpath={.status.failed} {.status.failedNodes[0]} {.status.message}")
		}).Should(Equal("1 " + nodes[0] + " job has completed"))
		Expect(held()).To(BeEmpty())
		Eventually(u.kubectl).WithArguments("get", "events", "--field-selector", "involvedObject.kind=ImagePullJob").Should(And(ContainSubstring("PullHeld"), ContainSubstring("Failed to pull image "+none+" on node "+nodes[0])))
	}, SpecTimeout(8*time.Minute))

	It("has one for each image of a list", Label("smoke"), func(ctx SpecContext) {
		u, _ := start(ctx)
		u.apply(`
apiVersion: apps.kruise.io/v1alpha1
kind: ImageListPullJob
metadata:
  name: warm
spec:
  images: ["busybox:1.35", "alpine:3.18"]
  parallelism: 3
  completionPolicy:
    type: Always
`)
		Eventually(func() string { return u.kubectl("get", "imagelistpulljobs", "--no-headers") }).Should(MatchRegexp(`^warm +2 +2 +2 +\S+$`))
		Expect(u.kubectl("get", "imagepulljobs", "-o", "jsonpath={.items[*].status.message}")).To(Equal("job has completed job has completed"))
		u.kubectl("delete", "imagelistpulljob", "warm")
		Eventually(func() string { return u.kubectl("get", "imagepulljobs", "-o", "name") }).Should(BeEmpty())
	}, SpecTimeout(8*time.Minute))

	It("copies its pull secrets where the namespace opens them", func(ctx SpecContext) {
		u, nodes := start(ctx)
		u.kubectl("create", "secret", "docker-registry", "login", "--docker-server=registry.example.com", "--docker-username=ann", "--docker-password=x")
		job := func(name, completion string) string {
			return `{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, metadata: {name: ` + name + `}, spec: {image: "busybox:1.34", selector: {names: [` + nodes[0] + `]}, pullSecrets: [login], completionPolicy: {type: ` + completion + `}}}`
		}
		fault := func(name string) func() string {
			return func() string {
				return u.kubectl("get", "imagepulljob", name, "-o", `jsonpath={.status.message}; {.status.conditions[?(@.type=="PullSecretMissing")].message}`)
			}
		}
		copies := func() string {
			return u.kubectl("get", "-n", "kruise-daemon-config", "secrets", "-o", `jsonpath={range .items[*]}{.metadata.annotations.imagepulljobs\.kruise\.io/source-key}{"="}{.metadata.annotations.imagepulljobs\.kruise\.io/references}{"\n"}{end}`)
		}
		u.apply(job("closed", "Always"))
		Eventually(fault("closed")).Should(And(HavePrefix("job has completed; "), ContainSubstring("bind the ClusterRole kruise-pull-secrets")))
		Expect(copies()).NotTo(ContainSubstring(u.namespace + "/"))

		u.kubectl("create", "rolebinding", "kruise-pull-secrets", "--clusterrole=kruise-pull-secrets", "--serviceaccount=kruise-system:kruise-manager")
		u.apply(job("open", "Never"))
		Eventually(fault("open")).Should(Equal("job is running, progress 100.0%;"))
		Expect(copies()).To(ContainSubstring(u.namespace + "/login=" + u.namespace + "/open"))
		u.kubectl("delete", "imagepulljob", "open")
		Eventually(copies).ShouldNot(ContainSubstring(u.namespace + "/"))
	}, SpecTimeout(8*time.Minute))

	It("keeps pods from their update until their nodes have the image, where a recipe says so", func(ctx SpecContext) {
		u, _ := start(ctx)
		recipe, err := policies.Examples.ReadFile("examples/image-on-node-first/image-on-node-first.rego")
		Expect(err).NotTo(HaveOccurred())
		b := &policy.PolicyBundle{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "first"}}
		b.Spec.Files = map[string]policy.FileText{
			"first.rego": policy.FileText(recipe),
			"hours.rego": "package extend.node.hours\n\nimport future.keywords.not\n\nhold contains {\"reason\": \"OfficeHours\", \"message\": \"Images are pulled in the evening.\"} if not input.job.labels.evening\n",
		}
		Expect(shared.k8s.Create(u.ctx, b)).To(Succeed())
		Eventually(func() string {
			return u.kubectl("get", "policybundle", "first", "-o", "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}")
		}).Should(Equal("True"))
		u.apply(web("first", 4, "imagefirst:1"))
		Eventually(u.status).WithArguments("first").Should(Equal(settled(4)))
		before := u.pods("first")

		By("updating while nothing is pulled")
		u.apply(web("first", 4, "imagefirst:2"))
		held := func() string {
			return u.kubectl("get", "clone", "first", "-o", `jsonpath={.status.conditions[?(@.type=="UpdateHeld")].message}`)
		}
		Eventually(held).Should(ContainSubstring("does not have image imagefirst:2 yet"))
		Consistently(func() (images []string) {
			for _, p := range u.pods("first") {
				images = append(images, p.Spec.Containers[0].Image)
			}
			return images
		}).WithTimeout(7 * time.Second).Should(And(HaveLen(4), HaveEach("imagefirst:1"))) // longer than until a held pod is looked at again
		Expect(u.why("clone/first")).To(And(ContainSubstring("ImageNotOnNode"), ContainSubstring("image-on-node-first.pulling")))

		By("pulling it")
		u.kubectl("label", "imagepulljobs", "--all", "evening=true")
		Eventually(u.status).WithArguments("first").Should(Equal(settled(4)))
		for name, p := range u.pods("first") {
			Expect(p.UID).To(Equal(before[name].UID), "%s was recreated", name)
			Expect(p.Spec.Containers[0].Image).To(Equal("imagefirst:2"))
		}
	}, SpecTimeout(8*time.Minute))

	// The nodes that have pods of a workload have the image while all pods still run the one
	// before; the job is gone when the rollout is over.
	DescribeTable("has the image of an update pulled ahead of it", func(ctx SpecContext, kind, manifest string, replicas int, hold, goOn string) {
		u, nodes := start(ctx)
		pods := cmp.Or(replicas, len(nodes)) // one on each node
		u.apply(fmt.Sprintf(manifest, "ahead:1"))
		Eventually(func() string { return u.kubectl("get", kind, "ahead", "-o", "jsonpath={.status.observedGeneration}") }).Should(Equal("1"))
		images := func() string {
			return u.kubectl("get", "pods", "-l", "app=ahead", "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].spec.containers[0].image}")
		}
		Eventually(func() []string { return strings.Fields(images()) }).Should(And(HaveLen(pods), HaveEach("ahead:1")))
		u.kubectl("patch", kind, "ahead", "--type=merge", "-p", hold)
		u.apply(fmt.Sprintf(manifest, "ahead:2"))
		jobs := func() string {
			return u.kubectl("get", "imagepulljobs", "-o", `jsonpath={range .items[*]}{.spec.image} {.status.message} {.status.succeeded}/{.status.desired}{end}`)
		}
		Eventually(jobs).Should(MatchRegexp(`^ahead:2 job has completed ([1-3])/([1-3])$`))
		Expect(strings.Fields(images())).To(And(HaveLen(pods), HaveEach("ahead:1")))
		Eventually(u.kubectl).WithArguments("get", "events", "--field-selector", "involvedObject.name=ahead").Should(ContainSubstring("created ImagePullJob "))
		u.kubectl("patch", kind, "ahead", "--type=merge", "-p", goOn)
		Eventually(func() []string { return strings.Fields(images()) }).Should(And(HaveLen(pods), HaveEach("ahead:2")))
		Eventually(jobs).Should(BeEmpty())
	},
		Entry("of a CloneSet in place", "clonesets", web("ahead", 4, "%s"), 4,
			`{"spec": {"updateStrategy": {"rollingUpdate": {"partition": "100%"}}}}`, `{"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}`, SpecTimeout(8*time.Minute)),
		Entry("of an Advanced DaemonSet whose pods are recreated", "daemonsets.apps.kruise.io", `
apiVersion: apps.kruise.io/v1beta1
kind: DaemonSet
metadata: {name: ahead}
spec:
  selector: {matchLabels: {app: ahead}}
  template:
    metadata: {labels: {app: ahead}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "%s"}]
`, 0, `{"spec": {"updateStrategy": {"rollingUpdate": {"partition": 100}}}}`, `{"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}`, SpecTimeout(8*time.Minute)),
	)
})
