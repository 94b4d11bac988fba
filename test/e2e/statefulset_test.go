// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// The Advanced StatefulSet section of the tutorial, in a namespace of its own, with claims.
var _ = Describe("an Advanced StatefulSet", func() {
	const manifest = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata:
  name: web
spec:
  serviceName: 'nginx-headless'
  podManagementPolicy: Parallel
  replicas: 3
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 2
      partition: %d
      podUpdatePolicy: InPlaceIfPossible
  selector:
    matchLabels:
      app: nginx
  template:
    metadata:
      labels:
        app: nginx
    spec:
      terminationGracePeriodSeconds: 1
      readinessGates:
        - conditionType: InPlaceUpdateReady
      containers:
        - name: nginx
          image: %s
          ports:
            - name: web
              containerPort: 80
          volumeMounts:
            - name: data
              mountPath: /data
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        resources: {requests: {storage: 10Mi}}
`
	status := func(u *user) string {
		set := &v1beta1.StatefulSet{}
		if err := shared.k8s.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: "web"}, set); err != nil {
			return err.Error()
		}
		s := set.Status
		return fmt.Sprintf("observed=%t replicas=%d ready=%d updated=%d", s.ObservedGeneration == set.Generation, s.Replicas, s.ReadyReplicas, s.UpdatedReplicas)
	}
	images := func(u *user) map[string]string {
		out := map[string]string{}
		for name, p := range u.pods("nginx") {
			out[name] = p.Spec.Containers[0].Image
		}
		return out
	}

	It("updates pods that keep their names, claims and nodes, down to the partition", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		u.apply(fmt.Sprintf(manifest, 0, "nginx:1.24"))
		Eventually(status).WithArguments(u).WithTimeout(2 * time.Minute).Should(Equal("observed=true replicas=3 ready=3 updated=3"))
		Expect(u.kubectl("get", "asts")).To(MatchRegexp(`NAME +DESIRED +CURRENT +UPDATED +READY +AGE\nweb +3 +3 +3 +3 `))
		before := u.pods("nginx")
		Expect(before).To(HaveLen(3))
		for i := range 3 {
			name := fmt.Sprintf("web-%d", i)
			Expect(before).To(HaveKey(name))
			Expect(before[name].Spec.Hostname).To(Equal(name))
			claim := &corev1.PersistentVolumeClaim{}
			Expect(shared.k8s.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: "data-" + name}, claim)).To(Succeed())
			Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
		}

		u.apply(fmt.Sprintf(manifest, 2, "nginx:1.25"))
		Eventually(status).WithArguments(u).WithTimeout(2 * time.Minute).Should(Equal("observed=true replicas=3 ready=3 updated=1"))
		Expect(images(u)).To(Equal(map[string]string{"web-0": "nginx:1.24", "web-1": "nginx:1.24", "web-2": "nginx:1.25"}))
		Expect(u.why("asts/web")).To(ContainSubstring("web"))

		u.apply(fmt.Sprintf(manifest, 0, "nginx:1.25"))
		Eventually(status).WithArguments(u).WithTimeout(2 * time.Minute).Should(Equal("observed=true replicas=3 ready=3 updated=3"))
		after := u.pods("nginx")
		for name, p := range before {
			Expect(after[name].UID).To(Equal(p.UID), "%s was recreated", name)
		}

		u.kubectl("scale", "asts", "web", "--replicas=1")
		Eventually(images).WithArguments(u).Should(Equal(map[string]string{"web-0": "nginx:1.25"}))
		u.kubectl("scale", "asts", "web", "--replicas=2")
		Eventually(status).WithArguments(u).WithTimeout(2 * time.Minute).Should(Equal("observed=true replicas=2 ready=2 updated=2"))
		Expect(u.pods("nginx")["web-1"].Spec.Volumes[0].PersistentVolumeClaim.ClaimName).To(Equal("data-web-1"))
	}, SpecTimeout(8*time.Minute))

	It("goes on where it was when a quota that stopped an update is raised", func(ctx SpecContext) {
		u := newUser(ctx)
		const limited = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  podManagementPolicy: Parallel
  replicas: 3
  updateStrategy: {rollingUpdate: {partition: 1}}
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: nginx, image: "nginx:%s"}]
`
		quota := func(pods int) {
			GinkgoHelper()
			u.apply(fmt.Sprintf(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: pods}, spec: {hard: {pods: "%d"}}}`, pods))
			Eventually(func() string { return u.kubectl("get", "quota", "pods", "-o", "jsonpath={.status.hard.pods}") }).Should(Equal(fmt.Sprint(pods)))
		}
		u.apply(fmt.Sprintf(limited, "1.24"))
		Eventually(status).WithArguments(u).Should(Equal("observed=true replicas=3 ready=3 updated=3"))

		By("allowing fewer pods than there are, in the middle of an update")
		quota(1)
		u.apply(fmt.Sprintf(limited, "1.25"))
		Eventually(images).WithArguments(u).Should(HaveLen(2))
		u.kubectl("delete", "pod", "web-0") // below the partition
		Eventually(u.events).WithArguments("web", "FailedCreate").Should(ContainElement(And(ContainSubstring("web-0"), ContainSubstring("exceeded quota"))))
		Expect(u.kubectl("get", "pods", "-l", "app=nginx", "-o", "name")).To(HavePrefix("pod/web-"), "no pod is left")

		By("allowing them")
		quota(3)
		Eventually(status).WithArguments(u).Should(Equal("observed=true replicas=3 ready=3 updated=2"))
		Expect(images(u)).To(Equal(map[string]string{"web-0": "nginx:1.24", "web-1": "nginx:1.25", "web-2": "nginx:1.25"}))
	}, SpecTimeout(6*time.Minute))
})
