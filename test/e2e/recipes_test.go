// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// recipe is one of policies/examples that an author makes their own and ships from a registry.
type recipe struct {
	*author
	name, dir, reference string
}

// recipe copies an example, with names replaced in its policies, data and cases as sed would.
func (a *author) recipe(name string, replace ...string) *recipe {
	GinkgoHelper()
	r := &recipe{author: a, name: name, dir: filepath.Join(a.dir, name), reference: shared.installed.Registry + "/policies/" + name + "-" + a.namespace + ":stable"}
	Expect(os.CopyFS(r.dir, os.DirFS(filepath.Join(shared.root, "policies", "examples", name)))).To(Succeed())
	r.edit(replace...)
	return r
}

func (r *recipe) edit(replace ...string) {
	GinkgoHelper()
	Expect(filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o644)
	})).To(Succeed())
}

// push packs the recipe and pushes it under its tag.
func (r *recipe) push(sequence string) {
	GinkgoHelper()
	archive := filepath.Join(r.author.dir, r.name+".tar.gz")
	r.types("regatta", "policy", "build", r.dir, "--with-tests", "-o", archive, "--sequence", sequence)
	r.types("regatta", "policy", "push", "--insecure", archive, r.reference)
}

// ship has the cluster decide by the recipe until the spec ends.
func (r *recipe) ship() {
	GinkgoHelper()
	r.types("regatta", "policy", "test", r.dir, "--min", "100")
	r.push("1")
	r.platform(r.name, "  oci: {reference: \""+r.reference+"\", interval: 10s, insecure: true}\n")
	r.types("kubectl", "wait", "--for=condition=Active", "clusterpolicybundle/"+r.name, "--timeout=60s")
}

var _ = Describe("recipes of where pods go", Serial, func() {
	const zoneLabel = "topology.kubernetes.io/zone"
	BeforeEach(func() {
		if shared.installed.Registry == "" {
			Skip("the cluster is not ours and has no registry that we know of")
		}
	})
	web := func(a *author, replicas int, subsets []string) {
		GinkgoHelper()
		a.apply(unitedDeployment("web", replicas, "deploymentTemplate: {metadata: {labels: {app: web}}, spec: {selector: {matchLabels: {app: web}}, template: "+podTemplate("web", "nginx:1.20", "")+"}}", "", subsets...))
	}
	in := func(a *author, nodes map[string][]string, want map[string]int) {
		GinkgoHelper()
		Eventually(func() map[string]int { return placed(a.user, "web", nodes) }).Should(Equal(want))
	}
	why := func(a *author) string { return a.types("regatta", "why", "-n", a.namespace, "ud/web") }

	It("fill the cheapest zone first, and follow prices", func(ctx SpecContext) {
		a := newAuthor(ctx)
		zones, nodes := zones(a.user)
		web(a, 5, subsetsIn(zoneLabel, zones, ", minReplicas: 1"))
		in(a, nodes, map[string]int{zones[0]: 5}) // in the order of the spec

		r := a.recipe("cheapest-zone-first", "eu-central-1a", zones[0], "eu-central-1b", zones[1])
		r.ship()
		in(a, nodes, map[string]int{zones[0]: 2, zones[1]: 3})
		Expect(why(a)).To(SatisfyAll(MatchRegexp(`subset-b +3 +\d+ +cheapest-zone-first.share +No zone gets more than 60 % of the pods, which are 3;`), MatchRegexp(`subset-a +2 +\d+ +placement.allocation.limits `)))

		By("publishing other prices")
		r.edit(zones[0]+": 0.042", zones[0]+": 0.012")
		r.push("2")
		in(a, nodes, map[string]int{zones[0]: 3, zones[1]: 2})
		Expect(why(a)).To(MatchRegexp(`subset-a +3 +\d+ +cheapest-zone-first.share `))
	}, SpecTimeout(6*time.Minute))

	It("put no more than half of the pods in spot", func(ctx SpecContext) {
		a := newAuthor(ctx)
		zones, nodes := zones(a.user)
		const label = "karpenter.sh/capacity-type"
		capacities := []string{"spot", "on-demand"}
		for i, capacity := range capacities {
			args := append([]string{"label", "nodes"}, nodes[zones[i]]...)
			a.kubectl(append(args, label+"="+capacity)...)
			undo(a.user, func() { a.kubectl(append(args, label+"-")...) })
		}
		web(a, 5, subsetsIn(label, capacities, ", maxReplicas: 5"))
		in(a, nodes, map[string]int{zones[0]: 5})

		a.recipe("half-in-spot").ship()
		in(a, nodes, map[string]int{zones[0]: 2, zones[1]: 3})
		Expect(why(a)).To(MatchRegexp(`subset-a +2 +\d+ +half-in-spot.share +No more than 50 % of the pods run on nodes that may be taken away`))
		a.kubectl("scale", "ud", "web", "--replicas=8")
		in(a, nodes, map[string]int{zones[0]: 4, zones[1]: 4})
	}, SpecTimeout(6*time.Minute))

	It("drain a zone one pod at a time, and fill it again", func(ctx SpecContext) {
		a := newAuthor(ctx)
		zones, nodes := zones(a.user)
		web(a, 4, subsetsIn(zoneLabel, zones, ""))
		in(a, nodes, map[string]int{zones[0]: 2, zones[1]: 2})
		ready := func() (n int) {
			for _, pod := range a.pods("web") {
				for _, c := range pod.Status.Conditions {
					if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
						n++
					}
				}
			}
			return n
		}
		Eventually(ready).Should(Equal(4))

		line := watchTimeline(a.user, nodes, "get", "ud", "web", "-o", `jsonpath={.status.readyReplicas} of {.spec.replicas} ready; {range .status.subsetStatuses[*]}{.name}={.replicas} {end}`)
		a.recipe("drain-a-zone", "eu-central-1b", zones[1]).ship()
		line.mark("zone " + zones[1] + " is drained")
		Eventually(func(g Gomega) {
			if ready() < 3 {
				StopTrying("more than one pod moves at a time").Now()
			}
			g.Expect(placed(a.user, "web", nodes)).To(Equal(map[string]int{zones[0]: 4}))
		}).WithPolling(50 * time.Millisecond).Should(Succeed())
		Expect(why(a)).To(MatchRegexp(`subset-b +0 +\d+ +drain-a-zone.step +The zone of subset subset-b is drained`))

		a.types("kubectl", "delete", "clusterpolicybundle", "drain-a-zone")
		line.mark("the bundle is deleted")
		in(a, nodes, map[string]int{zones[0]: 2, zones[1]: 2})
		line.end()
	}, SpecTimeout(6*time.Minute))
})
