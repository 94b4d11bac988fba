// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/cluster/gobuild"
	"github.com/regatta-sh/regatta/test/cluster/images"
	"github.com/regatta-sh/regatta/test/cluster/local"
)

// hotUpgradeSample is the repository of the images in the section of the tutorial about hot upgrades.
const hotUpgradeSample = "openkruise/hotupgrade-sample"

// loadHotUpgradeSample gives the images of that section what they do. It does so before any spec
// runs: a node that has an image keeps it, so that one which pulled the name earlier, for another
// spec, would run a stand-in that does nothing.
func loadHotUpgradeSample(ctx context.Context, root string, cluster *local.Cluster) {
	GinkgoHelper()
	program := filepath.Join(GinkgoT().TempDir(), "handover")
	out, err := gobuild.Command(ctx, root, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", program, "./test/e2e/handover").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	busybox, err := images.FindBusyBox()
	Expect(err).NotTo(HaveOccurred())
	programs := []string{program, filepath.Join("handover", "migrate.sh")}
	for tag, entrypoint := range map[string]string{"sidecarv1": "/handover serve v1", "sidecarv2": "/handover serve v2", "broken": "/bin/false",
		"empty": "/handover idle", "busybox": "/handover ask"} {
		_, err := cluster.Load(ctx, hotUpgradeSample+":"+tag, programs, images.Options{BusyBox: busybox, Entrypoint: strings.Fields(entrypoint)})
		Expect(err).NotTo(HaveOccurred())
	}
}

// The section of the tutorial about hot upgrades, with its SidecarSet and its CloneSet as they
// stand. Stand-ins have the names of its images. The SidecarSet has one name in the cluster, so that one
// spec follows another; its pods have a label that no other spec's have.
var _ = Describe("an upgrade of a proxy", Ordered, ContinueOnFailure, func() {
	const sample = hotUpgradeSample
	needsItsImages := func() {
		GinkgoHelper()
		if !shared.real || shared.cluster == nil {
			Skip("it needs containers that run, and images of its own")
		}
	}
	deleteSidecarSetLater := func() {
		DeferCleanup(func(ctx SpecContext) {
			set := &v1beta1.SidecarSet{}
			set.Name = "hotupgrade-sidecarset"
			Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, set))).To(Succeed())
		})
	}
	// start makes the SidecarSet and its pod.
	start := func(u *user, set string) *corev1.Pod {
		GinkgoHelper()
		u.apply(set)
		deleteSidecarSetLater()
		u.apply(tutorial("1595-cloneset-busybox.yaml"))
		Eventually(u.sidecars).WithArguments("hotupgrade-sidecarset").Should(Equal("1 1 1"))
		for _, pod := range u.pods("hotupgrade") {
			return pod
		}
		Fail("there is no pod")
		return nil
	}
	patch := func(u *user, resource, tag string) {
		GinkgoHelper()
		u.kubectl("patch", resource, "hotupgrade-sidecarset", "--type=json", "-p", `[{"op": "replace", "path": "/spec/containers/0/image", "value": "`+sample+`:`+tag+`"}]`)
	}
	answer := regexp.MustCompile(`^request sidecar server success, and response\(body=This is version\((v\d)\) sidecar\)$`)
	// asked is what the client got: the versions in order, and each line that tells of a failure.
	asked := func(u *user, pod string) (versions, failures []string) {
		GinkgoHelper()
		for line := range strings.Lines(u.kubectl("logs", pod, "-c", "busybox")) {
			line = strings.TrimSpace(line)
			if m := answer.FindStringSubmatch(line); m != nil {
				versions = append(versions, m[1])
			} else {
				failures = append(failures, line)
			}
		}
		return versions, failures
	}
	latest := func(u *user, pod string) string {
		return u.kubectl("logs", pod, "-c", "busybox", "--tail=1")
	}
	// pair is the images of the two containers, and which one works.
	pair := func(u *user, name string) string {
		pod := u.pods("hotupgrade")[name]
		var out []string
		for _, c := range pod.Spec.Containers[:2] {
			out = append(out, c.Name+" "+strings.TrimPrefix(c.Image, sample+":"))
		}
		return strings.Join(append(out, pod.Annotations["kruise.io/sidecarset-working-hotupgrade-container"]), ", ")
	}

	It("is not seen by a client where it is hot, in either direction", func(ctx SpecContext) {
		needsItsImages()
		u := newUser(ctx)
		name := start(u, tutorial("1534-sidecarset-hotupgrade.yaml")).Name
		pod := func() *corev1.Pod { return u.pods("hotupgrade")[name] }
		version := func(container string) string { return pod().Annotations["version.sidecarset.kruise.io/"+container] }
		alternate := func(container string) string {
			return pod().Annotations["versionalt.sidecarset.kruise.io/"+container]
		}
		// env is what the process of a container has.
		env := func(container string) string {
			return u.kubectl("exec", name, "-c", container, "--", "/bin/sh", "-c", "echo $SIDECARSET_VERSION $SIDECARSET_VERSION_ALT")
		}
		killed := func() (out []string) {
			for _, message := range u.events(name, "Killing") {
				out = append(out, strings.TrimSuffix(message, " definition changed, will be restarted"))
			}
			slices.Sort(out)
			return out
		}

		By("putting two containers into the pod, of which the first one works")
		first := pod()
		Expect(u.kubectl("get", "pod", name)).To(MatchRegexp(name + ` +3/3 +Running +0 `))
		Expect(pair(u, name)).To(Equal(`sidecar-1 sidecarv1, sidecar-2 empty, {"sidecar":"sidecar-1"}`))
		described := u.kubectl("describe", "pod", name)
		for _, c := range []string{"sidecar-1", "sidecar-2"} {
			Expect(described).To(MatchRegexp(`SIDECARSET_VERSION: +\(v1:metadata.annotations\['version.sidecarset.kruise.io/` + c + `'\]\)\n` +
				` +SIDECARSET_VERSION_ALT: +\(v1:metadata.annotations\['versionalt.sidecarset.kruise.io/` + c + `'\]\)`))
		}
		Expect([]string{env("sidecar-1"), env("sidecar-2")}).To(Equal([]string{"1 0", "0 1"}))
		Eventually(latest).WithArguments(u, name).Should(ContainSubstring("version(v1)"))

		By("upgrading the idle container, which takes over in its postStart hook, and resetting the other one")
		patch(u, "sidecarset", "sidecarv2")
		Eventually(pair).WithArguments(u, name).Should(Equal(`sidecar-1 empty, sidecar-2 sidecarv2, {"sidecar":"sidecar-2"}`))
		Eventually(u.sidecars).WithArguments("hotupgrade-sidecarset").Should(Equal("1 1 1"))
		second := version("sidecar-2")
		Expect(second).To(MatchRegexp(`^\d{2,}$`), "it is the resource version of the SidecarSet")
		Expect([]string{version("sidecar-1"), alternate("sidecar-1"), alternate("sidecar-2")}).To(Equal([]string{"0", second, "0"}))
		Expect(env("sidecar-2")).To(Equal(second+" 1"), "it was to take over from the version 1 when it started")
		Expect(env("sidecar-1")).To(Equal("0 " + second))
		Eventually(u.events).WithArguments(name, "ResetContainerSucceed").Should(ConsistOf("reset sidecar container image empty: sidecar-1"))
		Eventually(killed).Should(Equal([]string{"Container sidecar-1", "Container sidecar-2"}))

		By("upgrading the other way round, in the other version of the API")
		patch(u, "sidecarsets.v1beta1.apps.kruise.io", "sidecarv1")
		Eventually(pair).WithArguments(u, name).Should(Equal(`sidecar-1 sidecarv1, sidecar-2 empty, {"sidecar":"sidecar-1"}`))
		Eventually(u.sidecars).WithArguments("hotupgrade-sidecarset").Should(Equal("1 1 1"))
		Expect(env("sidecar-1")).To(Equal(version("sidecar-1") + " " + second))
		Expect([]string{version("sidecar-2"), alternate("sidecar-2"), alternate("sidecar-1")}).To(Equal([]string{"0", version("sidecar-1"), "0"}))
		Eventually(u.events).WithArguments(name, "ResetContainerSucceed").Should(ConsistOf("reset sidecar container image empty: sidecar-1", "reset sidecar container image empty: sidecar-2"))

		By("asking all the while")
		versions, failures := asked(u, name)
		AddReportEntry("the client of a hot upgrade", fmt.Sprintf("%d answers, %d failures", len(versions), len(failures)))
		Expect(failures).To(BeEmpty())
		seconds := int(time.Since(first.Status.StartTime.Time).Seconds())
		Expect(len(versions)).To(BeNumerically(">", seconds), "the client asked seldom in %d seconds", seconds)
		Expect(slices.Compact(versions)).To(Equal([]string{"v1", "v2", "v1"}))
		Expect(pod().UID).To(Equal(first.UID))
		for _, st := range pod().Status.ContainerStatuses {
			Expect(st.RestartCount).To(BeEquivalentTo(map[string]int{"sidecar-1": 2, "sidecar-2": 2}[st.Name]), "restarts of %s", st.Name)
		}
	}, SpecTimeout(10*time.Minute))

	It("keeps the old version where the new one does not start, and can be taken back", func(ctx SpecContext) {
		needsItsImages()
		u := newUser(ctx)
		name := start(u, tutorial("1534-sidecarset-hotupgrade.yaml")).Name
		patch(u, "sidecarset", "broken")
		waiting := func() string {
			return u.kubectl("get", "pod", name, "-o", `jsonpath={.status.containerStatuses[?(@.name=="sidecar-2")].state.waiting.reason}`)
		}
		Eventually(waiting).Should(Equal("CrashLoopBackOff"))
		half := `sidecar-1 sidecarv1, sidecar-2 broken, {"sidecar":"sidecar-2"}`
		Consistently(pair).WithArguments(u, name).WithTimeout(3 * time.Second).Should(Equal(half))
		Eventually(u.sidecars).WithArguments("hotupgrade-sidecarset").Should(Equal("1 1 0"))
		Expect(latest(u, name)).To(ContainSubstring("version(v1)"))

		for _, next := range []struct{ tag, pair string }{
			{"sidecarv1", `sidecar-1 empty, sidecar-2 sidecarv1, {"sidecar":"sidecar-2"}`},
			{"sidecarv2", `sidecar-1 sidecarv2, sidecar-2 empty, {"sidecar":"sidecar-1"}`},
		} {
			patch(u, "sidecarset", next.tag)
			Eventually(pair).WithArguments(u, name).Should(Equal(next.pair))
			Eventually(u.sidecars).WithArguments("hotupgrade-sidecarset").Should(Equal("1 1 1"))
		}
		versions, failures := asked(u, name)
		Expect(failures).To(BeEmpty())
		Expect(slices.Compact(versions)).To(Equal([]string{"v1", "v2"}))
	}, SpecTimeout(10*time.Minute))

	It("ends where the version before was never ready, as kubectl apply mends it", func(ctx SpecContext) {
		needsItsImages()
		u := newUser(ctx)
		good := tutorial("1534-sidecarset-hotupgrade.yaml")
		manifest := func(tag string) string { return strings.Replace(good, sample+":sidecarv1", sample+":"+tag, 1) }
		deleteSidecarSetLater()
		u.apply(manifest("broken"))
		u.apply(tutorial("1595-cloneset-busybox.yaml"))
		reason := func() string {
			return u.kubectl("get", "pods", "-l", "app=hotupgrade", "-o", `jsonpath={.items[*].status.containerStatuses[?(@.name=="sidecar-1")].state.waiting.reason}`)
		}
		Eventually(reason).Should(Equal("CrashLoopBackOff"))
		pods := u.pods("hotupgrade")
		Expect(pods).To(HaveLen(1))
		var name string
		for name = range pods {
		}
		Expect(pair(u, name)).To(Equal(`sidecar-1 broken, sidecar-2 empty, {"sidecar":"sidecar-1"}`))
		Eventually(u.sidecars).WithArguments("hotupgrade-sidecarset").Should(Equal("1 1 0"))

		By("applying the manifest with an image that runs")
		u.apply(manifest("sidecarv1"))
		Eventually(pair).WithArguments(u, name).Should(Equal(`sidecar-1 empty, sidecar-2 sidecarv1, {"sidecar":"sidecar-2"}`))
		Eventually(u.sidecars).WithArguments("hotupgrade-sidecarset").Should(Equal("1 1 1"))
		Eventually(u.events).WithArguments(name, "ResetContainerSucceed").Should(ConsistOf("reset sidecar container image empty: sidecar-1"))
		Eventually(latest).WithArguments(u, name).Should(ContainSubstring("version(v1)"))
		Eventually(u.kubectl).WithArguments("get", "pod", name).Should(MatchRegexp(name + ` +3/3 +Running `))

		By("applying the next one, for which the container that was broken starts anew")
		u.apply(manifest("sidecarv2"))
		Eventually(pair).WithArguments(u, name).Should(Equal(`sidecar-1 sidecarv2, sidecar-2 empty, {"sidecar":"sidecar-1"}`))
		Eventually(u.sidecars).WithArguments("hotupgrade-sidecarset").Should(Equal("1 1 1"))
		Eventually(latest).WithArguments(u, name).Should(ContainSubstring("version(v2)"))
		Expect(u.pods("hotupgrade")[name].UID).To(Equal(pods[name].UID), "no pod was made again")
		versions, _ := asked(u, name) // it failed while no version had been ready
		Expect(slices.Compact(versions)).To(Equal([]string{"v1", "v2"}))
	}, SpecTimeout(10*time.Minute))

	// That the client would see a gap if there was one.
	It("is seen by the same client where it is cold", func(ctx SpecContext) {
		needsItsImages()
		u := newUser(ctx)
		hot := strings.Replace(tutorial("1534-sidecarset-hotupgrade.yaml"), "v1alpha1", "v1beta1", 1)
		cold, strategy, ok := strings.Cut(hot, "      upgradeStrategy:")
		Expect(ok && strings.HasSuffix(strategy, ":empty # 镜像\n")).To(BeTrue(), "there is something else behind the strategy")
		pod := start(u, cold)
		Expect(pod.Spec.Containers).To(HaveLen(2))
		Eventually(latest).WithArguments(u, pod.Name).Should(ContainSubstring("version(v1)"))
		patch(u, "sidecarset", "sidecarv2")
		Eventually(latest).WithArguments(u, pod.Name).Should(ContainSubstring("version(v2)"))
		versions, failures := asked(u, pod.Name)
		AddReportEntry("the client of a cold upgrade", fmt.Sprintf("%d answers, %d failures", len(versions), len(failures)))
		Expect(failures).To(ContainElement(ContainSubstring("connection refused")))
		Expect(slices.Compact(versions)).To(Equal([]string{"v1", "v2"}))
	}, SpecTimeout(10*time.Minute))
})

// tutorial is a manifest of the tutorial as it stands.
func tutorial(file string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("testdata", "tutorial", file))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// sidecars are what kubectl prints of the status of a SidecarSet, once it is of the newest generation:
// the pods that are matched, updated and ready.
func (u *user) sidecars(name string) string {
	set := &v1beta1.SidecarSet{}
	if err := shared.k8s.Get(u.ctx, client.ObjectKey{Name: name}, set); err != nil {
		return err.Error()
	}
	if set.Status.ObservedGeneration != set.Generation {
		return "not observed"
	}
	lines := strings.Split(u.kubectl("get", "sidecarset", name), "\n")
	return strings.Join(strings.Fields(lines[len(lines)-1])[1:4], " ")
}
