// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Every object of our kinds that the tutorial and the FAQ of OpenKruise show
// is applied as it stands; fragments go onto the object they are about. What is
// read back in any version can be applied again, and changes nothing.
var _ = Describe("what the tutorial shows", Serial, Ordered, ContinueOnFailure, func() {
	dir := filepath.Join("testdata", "tutorial")
	var u *user
	BeforeAll(func(ctx SpecContext) {
		u = newUser(ctx)
		u.applyFile(filepath.Join(dir, "pod-75x98.yaml"))
		DeferCleanup(func(ctx SpecContext) {
			u.ctx = ctx
			u.kubectl("delete", "-n", "default", "pod", "busybox-75x98", "--now")
		})
		u.kubectl("wait", "-n", "default", "--for=condition=Ready", "pod/busybox-75x98", "--timeout=120s")
	}, NodeTimeout(3*time.Minute))

	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	It("is here", func() { Expect(paths, err).NotTo(BeEmpty()) })
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "pod-") {
			continue
		}
		It("applies "+filepath.Base(path), func(ctx SpecContext) {
			u.ctx = ctx
			raw, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			file := path
			if onto, ok := strings.CutPrefix(strings.SplitN(string(raw), "\n", 2)[0], "# onto "); ok {
				file = filepath.Join(dir, onto)
			}
			base, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal(base, &object.Object)).To(Succeed())
			u.applyFile(file)
			kind := object.GroupVersionKind()
			plural := strings.ToLower(kind.Kind) + "s"
			resource := plural + "." + kind.Version + "." + kind.Group
			DeferCleanup(func(ctx SpecContext) {
				u.ctx = ctx
				u.kubectl("delete", "-n", "default", resource, object.GetName())
			})
			if file != path {
				u.kubectl("patch", "-n", "default", resource, object.GetName(), "--type=merge", "--patch-file", filepath.Join("test", "e2e", path))
			}
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				u.appliesAgain(plural+"."+version+"."+kind.Group, object.GetName())
			}
			condition := func(which string) string {
				return u.kubectl("get", "-n", "default", plural+"."+kind.Group, object.GetName(), "-o", `jsonpath={.status.conditions[?(`+which+`)].status}`)
			}
			if slices.Contains([]string{"AdvancedCronJob", "BroadcastJob", "EphemeralJob", "PersistentPodState", "UnitedDeployment", "WorkloadSpread", "CloneSet", "StatefulSet", "DaemonSet", "SidecarSet", "ContainerRecreateRequest", "NodeImage", "ImagePullJob", "ImageListPullJob", "PodProbeMarker", "NodePodProbe"}, kind.Kind) {
				// A controller that acts on it may say Stalled for another reason.
				Expect(condition(`@.reason=="FeatureGateOff"`)).To(BeEmpty(), "a condition says that no controller acts on it")
				return
			}
			Eventually(condition).WithArguments(`@.type=="Stalled"`).Should(Equal("True"), "no condition says that no controller acts on it")
		}, SpecTimeout(6*time.Minute))
	}
})

// applyFile applies a file of this folder in namespace default, unless it names
// another; a field that does not exist fails it.
func (u *user) applyFile(path string) {
	GinkgoHelper()
	out, err := u.try("kubectl", "apply", "--server-side", "--validate=strict", "-f", filepath.Join("test", "e2e", path))
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	Expect(out).NotTo(ContainSubstring("Warning"))
}

// appliesAgain applies what is read in a version, and wants it to change nothing.
func (u *user) appliesAgain(resource, name string) {
	GinkgoHelper()
	read := func() *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		Expect(json.Unmarshal([]byte(u.kubectl("get", "-n", "default", resource, name, "-o", "json")), &object.Object)).To(Succeed())
		return object
	}
	before := read()
	again := before.DeepCopy()
	again.SetManagedFields(nil)
	again.SetResourceVersion("")
	unstructured.RemoveNestedField(again.Object, "status")
	raw, err := json.Marshal(again)
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(GinkgoT().TempDir(), "again.json")
	Expect(os.WriteFile(file, raw, 0o600)).To(Succeed())
	u.kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "-n", "default", "-f", file)
	Expect(read().GetGeneration()).To(Equal(before.GetGeneration()), "applying what was read as %s changed it", resource)
}
