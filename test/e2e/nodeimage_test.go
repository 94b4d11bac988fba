// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a NodeImage", func() {
	It("is there for each node, and has an image pulled that the tutorial adds to it", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		if !shared.real {
			Skip("simulated nodes have no container runtime")
		}
		nodes := strings.Fields(u.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
		Eventually(func() []string {
			return strings.Fields(u.kubectl("get", "nodeimages", "-o", "jsonpath={.items[*].metadata.name}"))
		}).Should(ConsistOf(nodes))
		node := nodes[0]
		status := func(path string) func() string {
			return func() string { return u.kubectl("get", "nodeimage", node, "-o", "jsonpath={"+path+"}") }
		}
		Eventually(status(".status.firstSyncStatus.status")).Should(Equal("Succeeded"))

		ask := func(image, tag, policy string) {
			u.kubectl("patch", "nodeimage", node, "--type=merge", "-p",
				`{"spec": {"images": {"`+image+`": {"tags": [{"tag": "`+tag+`", "imagePullPolicy": "`+policy+`", "pullPolicy": {"ttlSecondsAfterFinished": 20, "timeoutSeconds": 60, "backoffLimit": 0}}]}}}}`)
		}
		events := func() string {
			return u.kubectl("get", "events", "-A", "--field-selector", "involvedObject.kind=NodeImage,involvedObject.name="+node,
				"-o", `jsonpath={range .items[*]}{.count} {.message}{"\n"}{end}`)
		}
		// The recorder of the agent drops events of an object after 25, and one every five minutes after that. Jobs of other specs
		// may have caused as many. Those that are alike are one Event with a count.
		mayDrop := WithTransform(sumOfCounts, BeNumerically(">=", 20))

		By("pulling it from the registry")
		ask("ubuntu", "latest", "Always")
		Eventually(status(".status.imageStatuses.ubuntu.tags[0].phase")).Should(Equal("Succeeded"))
		Expect(status(".status.imageStatuses.ubuntu.tags[0].imageID")()).To(HavePrefix("ubuntu@sha256:"))
		// Jobs of other specs have images pulled on this node too, so the counts are at least one.
		Expect(u.kubectl("get", "nodeimage", node)).To(MatchRegexp(`^NAME +DESIRED +PULLING +SUCCEED +FAILED +AGE\n\S+ +[1-9][0-9]* +.*[1-9]`))
		Eventually(events).Should(Or(ContainSubstring("Image ubuntu:latest, ecalpsedTime "), mayDrop))

		By("finding one that is there")
		since := time.Now()
		u.kubectl("patch", "nodeimage", node, "--type=json", "-p",
			`[{"op": "add", "path": "/spec/images/ubuntu/tags/0/version", "value": 1}, {"op": "add", "path": "/spec/images/ubuntu/tags/0/imagePullPolicy", "value": "IfNotPresent"}]`)
		Eventually(status(".status.imageStatuses.ubuntu.tags[0].version")).WithPolling(50 * time.Millisecond).Should(Equal("1"))
		Eventually(status(".status.imageStatuses.ubuntu.tags[0].phase")).WithPolling(50 * time.Millisecond).Should(Equal("Succeeded"))
		AddReportEntry("until an image that is there was reported", time.Since(since))

		By("cleaning up behind itself")
		Eventually(status(".spec.images.ubuntu")).Should(BeEmpty())
	}, SpecTimeout(10*time.Minute))
})

// sumOfCounts adds up the numbers that lines begin with; a line without one is an event that happened once.
func sumOfCounts(lines string) (sum int) {
	for line := range strings.Lines(lines) {
		count, _, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			n = 1
		}
		sum += n
	}
	return sum
}
