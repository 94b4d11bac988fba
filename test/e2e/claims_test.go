// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/cluster/csi"
	"github.com/regatta-sh/regatta/test/cluster/csi/sidecars"
)

// provisioner serves the volumes: the CSI driver where there are kubelets to mount them.
func provisioner() string {
	if hasCSI() {
		return csi.Name
	}
	return "regatta.sh/local"
}

func hasCSI() bool { return shared.cluster != nil && shared.cluster.State.CSI }

// watchGrowth returns what the claims of the user's namespace ask for and have, and each
// change of it since, in the order in which the API server made them.
func (u *user) watchGrowth() func() []string {
	GinkgoHelper()
	k8s, err := shared.cluster.Client()
	Expect(err).NotTo(HaveOccurred())
	claims := k8s.CoreV1().PersistentVolumeClaims(u.namespace)
	list, err := claims.List(u.ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	w, err := claims.Watch(u.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	var mu sync.Mutex
	var seen []string
	add := func(c *corev1.PersistentVolumeClaim) {
		text := fmt.Sprintf("%s %s/%s", c.Name, c.Status.Capacity.Storage(), c.Spec.Resources.Requests.Storage())
		if slices.ContainsFunc(c.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue
		}) {
			text += " waits for the file system"
		}
		mu.Lock()
		defer mu.Unlock()
		if len(seen) == 0 || seen[len(seen)-1] != text {
			seen = append(seen, text)
		}
	}
	for i := range list.Items {
		add(&list.Items[i])
	}
	go func() {
		for e := range w.ResultChan() {
			if c, ok := e.Object.(*corev1.PersistentVolumeClaim); ok {
				add(c)
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// fileSystem is the size of the file system of a claim's volume, as its node has made it,
// and of the volume.
func (u *user) fileSystem(claim string) string {
	GinkgoHelper()
	found, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	Expect(shared.k8s.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: claim}, found)).To(Succeed())
	Expect(shared.k8s.Get(u.ctx, client.ObjectKey{Name: found.Spec.VolumeName}, volume)).To(Succeed())
	size, err := csi.FileSystemSize(sidecars.Volumes(shared.cluster.State), volume.Spec.CSI.VolumeHandle)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("%s of %s", resource.NewQuantity(size, resource.BinarySI), volume.Spec.Capacity.Storage())
}

// Volume claims that grow with their template, while their pods are updated one at a time.
var _ = Describe("the claims of an Advanced StatefulSet", func() {
	// grows makes a storage class of the namespace's name, whose volumes grow.
	grows := func(u *user, parameters string) {
		u.apply(fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s}
provisioner: %s
allowVolumeExpansion: true
parameters: {%s}
`, u.namespace, provisioner(), parameters))
		DeferCleanup(func(ctx SpecContext) {
			u.ctx = ctx
			u.kubectl("delete", "storageclass", u.namespace)
		}, NodeTimeout(time.Minute))
	}
	set := func(image, class, size string) string {
		return fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  podManagementPolicy: Parallel
  replicas: 2
  volumeClaimUpdateStrategy: {type: OnPodRollingUpdate}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      readinessGates: [{conditionType: InPlaceUpdateReady}]
      containers:
      - {name: nginx, image: %q, volumeMounts: [{name: data, mountPath: /data}]}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: %s, accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}
`, image, class, size)
	}
	// each pod, with its image, and what its claim asks for and has. The kubelet calls a pod ready for
	// a moment after its image has changed and its gate is shut, so that both count.
	state := func(u *user) string {
		var out []string
		pods := u.pods("db")
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			claim := &corev1.PersistentVolumeClaim{}
			if err := shared.k8s.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: "data-" + name}, claim); err != nil {
				return err.Error()
			}
			p := pods[name]
			is := map[corev1.PodConditionType]bool{}
			for _, c := range p.Status.Conditions {
				is[c.Type] = c.Status == corev1.ConditionTrue
			}
			if !is[corev1.PodReady] || !is["InPlaceUpdateReady"] {
				name += "(not ready)"
			}
			out = append(out, fmt.Sprintf("%s %s %s/%s", name, strings.TrimPrefix(p.Spec.Containers[0].Image, "nginx:"), claim.Status.Capacity.Storage(), claim.Spec.Resources.Requests.Storage()))
		}
		return strings.Join(out, ", ")
	}

	It("grow before their pods are updated, and take another size where the first cannot be had", func(ctx SpecContext) {
		u := newUser(ctx)
		grows(u, "limit: 40Mi")
		u.apply(set("nginx:1.24", u.namespace, "10Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.24 10Mi/10Mi, db-1 1.24 10Mi/10Mi"))
		before := u.pods("db")

		u.apply(set("nginx:1.25", u.namespace, "20Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.25 20Mi/20Mi, db-1 1.25 20Mi/20Mi"))
		for name, p := range u.pods("db") {
			Expect(p.UID).To(Equal(before[name].UID), "%s was recreated", name)
		}
		Eventually(func() string { return u.kubectl("get", "asts", "db", "-o", "jsonpath={.status.volumeClaims}") }).Should(Equal(`[{"compatibleReadyReplicas":2,"compatibleReplicas":2,"volumeClaimName":"data"}]`))

		By("asking for more than there is")
		u.apply(set("nginx:1.26", u.namespace, "80Mi"))
		Eventually(u.why).WithArguments("pod/db-1").Should(ContainSubstring("Claim data-db-1 grows from 20Mi to 80Mi"))
		Eventually(func() string {
			return u.kubectl("get", "asts", "db", "-o", `jsonpath={.status.conditions[?(@.type=="FailedUpdatePod")].message}`)
		}).Should(ContainSubstring("pod db-1 is not updated: ControllerResizeError"))
		Expect(state(u)).To(Equal("db-0 1.25 20Mi/20Mi, db-1 1.25 20Mi/80Mi"))

		By("asking for less")
		u.apply(set("nginx:1.26", u.namespace, "30Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.26 30Mi/30Mi, db-1 1.26 30Mi/30Mi"))

		By("growing one of them by hand")
		u.kubectl("patch", "pvc", "data-db-0", "--type=merge", "-p", `{"spec":{"resources":{"requests":{"storage":"40Mi"}}}}`)
		u.apply(set("nginx:1.26", u.namespace, "35Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.26 40Mi/40Mi, db-1 1.26 35Mi/35Mi"))
		Eventually(u.why).WithArguments("asts/db").Should(ContainSubstring("Claim data-db-0: size 40Mi is more than the 35Mi of the template"))
	}, SpecTimeout(6*time.Minute))

	It("grow one after the other, each when the file system of the one before has grown", func(ctx SpecContext) {
		if !hasCSI() {
			Skip("needs a CSI driver, and kubelets that it mounts volumes for")
		}
		u := newUser(ctx)
		grows(u, "nodeExpansionDelay: 3s")
		u.apply(set("nginx:1.24", u.namespace, "10Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.24 10Mi/10Mi, db-1 1.24 10Mi/10Mi"))
		before, growth := u.pods("db"), u.watchGrowth()
		u.apply(set("nginx:1.25", u.namespace, "20Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.25 20Mi/20Mi, db-1 1.25 20Mi/20Mi"))
		Eventually(growth).Should(Equal([]string{
			"data-db-0 10Mi/10Mi", "data-db-1 10Mi/10Mi",
			"data-db-1 10Mi/20Mi", "data-db-1 10Mi/20Mi waits for the file system", "data-db-1 20Mi/20Mi",
			"data-db-0 10Mi/20Mi", "data-db-0 10Mi/20Mi waits for the file system", "data-db-0 20Mi/20Mi",
		}))
		for name, p := range u.pods("db") {
			Expect(p.UID).To(Equal(before[name].UID), "%s was recreated", name)
			Expect(u.fileSystem("data-" + name)).To(Equal("20Mi of 20Mi"))
		}
	}, SpecTimeout(6*time.Minute))

	It("are waited for where file systems grow when a pod mounts them", func(ctx SpecContext) {
		if !hasCSI() {
			Skip("needs a CSI driver, and kubelets that it mounts volumes for")
		}
		u := newUser(ctx)
		grows(u, "nodeExpansion: atMount")
		u.apply(set("nginx:1.24", u.namespace, "10Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.24 10Mi/10Mi, db-1 1.24 10Mi/10Mi"))
		u.apply(set("nginx:1.25", u.namespace, "20Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.24 10Mi/10Mi, db-1 1.25 10Mi/20Mi"))
		Expect(u.why("pod/db-1")).To(ContainSubstring("Claim data-db-1 grows from 10Mi to 20Mi"))
		Consistently(state).WithArguments(u).WithTimeout(5 * time.Second).Should(Equal("db-0 1.24 10Mi/10Mi, db-1 1.25 10Mi/20Mi"))
		Expect(u.fileSystem("data-db-1")).To(Equal("10Mi of 20Mi"))

		By("deleting the pod, so that the next mounts the volume")
		u.kubectl("delete", "pod", "db-1")
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.25 10Mi/20Mi, db-1 1.25 20Mi/20Mi"))
		Expect(u.fileSystem("data-db-1")).To(Equal("20Mi of 20Mi"))
		u.kubectl("delete", "pod", "db-0")
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.25 20Mi/20Mi, db-1 1.25 20Mi/20Mi"))
	}, SpecTimeout(6*time.Minute))

	It("keep their pods from the update where their class lets none grow, which is reported", func(ctx SpecContext) {
		u := newUser(ctx)
		grows(u, "")
		u.apply(set("nginx:1.24", u.namespace, "10Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.24 10Mi/10Mi, db-1 1.24 10Mi/10Mi"))
		u.kubectl("patch", "storageclass", u.namespace, "-p", `{"allowVolumeExpansion":false}`)
		Eventually(func() string { return u.refused(set("nginx:1.25", u.namespace, "20Mi")) }).Should(ContainSubstring("does not let volumes grow"))

		By("changing the template while claims do not follow it")
		onDelete := strings.Replace(set("nginx:1.24", u.namespace, "20Mi"), "OnPodRollingUpdate", "OnDelete", 1)
		u.apply(onDelete)
		reason := func() string {
			return u.kubectl("get", "asts", "db", "-o", `jsonpath={.status.conditions[?(@.type=="VolumeClaimsDiffer")].reason}`)
		}
		Eventually(reason).Should(Equal("OnDelete"))
		u.apply(set("nginx:1.25", u.namespace, "20Mi"))
		Eventually(reason).Should(Equal("CannotGrow"))
		Eventually(u.why).WithArguments("asts/db").Should(ContainSubstring("does not allow volumes to grow"))
		Expect(state(u)).To(Equal("db-0 1.24 10Mi/10Mi, db-1 1.24 10Mi/10Mi"))

		By("leaving the claims as they are")
		u.apply(strings.Replace(onDelete, "1.24", "1.25", 1))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.25 10Mi/10Mi, db-1 1.25 10Mi/10Mi"))
	}, SpecTimeout(6*time.Minute))
})
