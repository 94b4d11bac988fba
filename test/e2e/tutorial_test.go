// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// The CloneSet tutorial of OpenKruise, step by step. Its
// minReadySeconds of 60 is 8 here, unless E2E_FULL is set: nothing but the
// waiting changes.
var _ = Describe("the CloneSet tutorial", SpecPriority(1), func() {
	It("scales out step by step, deletes a named pod, updates in place, and stops at the partition", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		apply := func(file string, replace ...string) {
			GinkgoHelper()
			raw, err := os.ReadFile(filepath.Join("testdata", "cloneset-tutorial", file))
			Expect(err).NotTo(HaveOccurred())
			text := strings.NewReplacer(replace...).Replace(string(raw))
			if os.Getenv("E2E_FULL") == "" {
				text = strings.ReplaceAll(text, "minReadySeconds: 60", "minReadySeconds: 8")
			}
			u.apply(text)
		}

		By("creating it: three pods, made by the cloneset-controller, owned by the CloneSet")
		apply("cloneset-demo-v1.yaml")
		Eventually(u.status).WithArguments("cs-demo").Should(Equal(settled(3)))
		Expect(u.kubectl("get", "cloneset", "cs-demo")).To(MatchRegexp(`NAME +DESIRED +UPDATED +UPDATED_READY +UPDATED_AVAILABLE +READY +TOTAL +AGE\ncs-demo +3 +3 +3 +3 +3 +3`))
		first := u.pods("cs")
		Expect(first).To(HaveLen(3))
		describe := func() string { return u.kubectl("describe", "cloneset", "cs-demo") } // its events come behind its status
		for name, pod := range first {
			Eventually(describe).Should(MatchRegexp(`Normal +SuccessfulCreate .*cloneset-controller +succeed to create pod %s`, name))
			Expect(pod.OwnerReferences).To(HaveLen(1))
			Expect(pod.OwnerReferences[0].APIVersion + " " + pod.OwnerReferences[0].Kind).To(Equal("apps.kruise.io/v1alpha1 CloneSet"))
			Expect(name).To(MatchRegexp(`^cs-demo-[a-z0-9]{5}$`))
		}

		By("scaling out to five, one pod at a time, each after the other is available")
		apply("cloneset-demo-v2.yaml")
		Eventually(u.pods).WithArguments("cs").Should(HaveLen(4))
		Eventually(u.events).WithArguments("cs-demo", "ScaleUpLimited").Should(ContainElements(
			"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 1",
			"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 0"))
		Expect(u.pods("cs")).To(HaveLen(4), "the fifth pod came before the fourth was available")
		Eventually(u.status).WithArguments("cs-demo").WithTimeout(4 * time.Minute).Should(Equal(settled(5)))
		var created []time.Time
		var last string
		for name, pod := range u.pods("cs") {
			if first[name] == nil {
				created = append(created, pod.CreationTimestamp.Time)
				last = name
			}
		}
		Expect(created).To(HaveLen(2))
		Expect(created[0].Sub(created[1]).Abs()).To(BeNumerically(">=", time.Duration(u.cloneSet("cs-demo").Spec.MinReadySeconds)*time.Second))

		By("scaling in by the name of a pod, which is then taken off the list")
		apply("cloneset-demo-v3.yaml", "POD_TO_DELETE", last)
		Eventually(u.pods).WithArguments("cs").Should(And(HaveLen(4), Not(HaveKey(last))))
		Eventually(func() []string { return u.cloneSet("cs-demo").Spec.ScaleStrategy.PodsToDelete }).Should(BeEmpty())
		Eventually(u.status).WithArguments("cs-demo").Should(Equal(settled(4)))

		By("updating the image in place: same name, UID and address, one more restart, one pod at a time")
		before := u.pods("cs")
		apply("cloneset-demo-v4.yaml")
		Eventually(u.status).WithArguments("cs-demo").WithTimeout(6 * time.Minute).Should(Equal(settled(4)))
		after := u.pods("cs")
		revision := u.cloneSet("cs-demo").Status.UpdateRevision
		for name, pod := range before {
			now := after[name]
			Expect(now).NotTo(BeNil(), "pod %s is gone", name)
			Expect(now.UID).To(Equal(pod.UID))
			Expect(now.Status.PodIP).To(Equal(pod.Status.PodIP))
			Expect(now.Spec.Containers[0].Image).To(Equal("nginx:1.7.9"))
			Expect(restarts(now)).To(Equal(restarts(pod)+1), "restarts of pod %s", name)
			Eventually(u.events).WithArguments("cs-demo", "SuccessfulUpdatePodInPlace").Should(ContainElement(
				"successfully update pod " + name + " in-place(revision " + revision + ")"))
		}

		By("updating only as far as the partition")
		apply("cloneset-demo-v5.yaml")
		Eventually(u.status).WithArguments("cs-demo").WithTimeout(6 * time.Minute).Should(
			Equal("observed=true updated=2 available=4 updatedAvailable=2 total=4"))
		Consistently(u.status).WithArguments("cs-demo").WithTimeout(5 * time.Second).Should(
			Equal("observed=true updated=2 available=4 updatedAvailable=2 total=4"))
		Expect(strings.Count(u.kubectl("get", "pods", "-l", "app=cs", "-L", "controller-revision-hash"), u.cloneSet("cs-demo").Status.UpdateRevision)).To(Equal(2))
	}, SpecTimeout(20*time.Minute))
})

func restarts(pod *corev1.Pod) (n int32) {
	for _, c := range pod.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}
