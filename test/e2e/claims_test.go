// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Volume claims that grow with their template, while their pods are updated one at a time.
var _ = Describe("the claims of an Advanced StatefulSet", func() {
	class := func(name, rest string) string {
		return fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\nprovisioner: regatta.sh/local\n%s\n", name, rest)
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
	// each pod that is ready, with its image, and what its claim asks for and has.
	state := func(u *user) string {
		var out []string
		pods := u.pods("db")
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			claim := &corev1.PersistentVolumeClaim{}
			if err := shared.k8s.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: "data-" + name}, claim); err != nil {
				return err.Error()
			}
			p := pods[name]
			if ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}); !ready {
				name += "(not ready)"
			}
			out = append(out, fmt.Sprintf("%s %s %s/%s", name, strings.TrimPrefix(p.Spec.Containers[0].Image, "nginx:"), claim.Status.Capacity.Storage(), claim.Spec.Resources.Requests.Storage()))
		}
		return strings.Join(out, ", ")
	}

	It("grow before their pods are updated, and take another size where the first cannot be had", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(class(u.namespace, "allowVolumeExpansion: true\nparameters: {limit: 40Mi}"))
		DeferCleanup(func(ctx SpecContext) {
			u.ctx = ctx
			u.kubectl("delete", "storageclass", u.namespace)
		}, NodeTimeout(time.Minute))
		u.apply(set("nginx:1.24", u.namespace, "10Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.24 10Mi/10Mi, db-1 1.24 10Mi/10Mi"))
		before := u.pods("db")

		u.apply(set("nginx:1.25", u.namespace, "20Mi"))
		Eventually(state).WithArguments(u).Should(Equal("db-0 1.25 20Mi/20Mi, db-1 1.25 20Mi/20Mi"))
		for name, p := range u.pods("db") {
			Expect(p.UID).To(Equal(before[name].UID), "%s was recreated", name)
		}
		Expect(u.kubectl("get", "asts", "db", "-o", "jsonpath={.status.volumeClaims}")).To(Equal(`[{"compatibleReadyReplicas":2,"compatibleReplicas":2,"volumeClaimName":"data"}]`))

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

	It("keep their pods from the update where their class lets none grow, which is told", func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(class(u.namespace, "allowVolumeExpansion: true"))
		DeferCleanup(func(ctx SpecContext) {
			u.ctx = ctx
			u.kubectl("delete", "storageclass", u.namespace)
		}, NodeTimeout(time.Minute))
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
