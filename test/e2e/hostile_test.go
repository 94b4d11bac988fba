// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// What anyone who may annotate a pod can write, where the managers and the node agents read JSON.
var _ = Describe("an annotation that no manager wrote", SpecPriority(1), func() {
	It("ends no manager and no node agent, and keeps no other pod from its update", func(ctx SpecContext) {
		u := newUser(ctx)
		set := &v1beta1.SidecarSet{}
		set.Name = "hostile-" + u.namespace
		u.apply(fmt.Sprintf(`
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: %s}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  selector: {matchLabels: {app: web}}
  updateStrategy: {maxUnavailable: 100%%}
  containers: [{name: shipper, image: "busybox:1.34", command: [sleep, "3600"]}]
`, set.Name, u.namespace))
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, set))).To(Succeed()) })
		u.apply(`
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 100%}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "nginx:1.28"}]}
`)
		names := func() []string {
			return strings.Fields(u.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}"))
		}
		Eventually(func() string { return u.kubectl("get", "cloneset", "web", "-o", "jsonpath={.status.readyReplicas}") }).Should(Equal("2"))
		hostile, healthy := names()[0], names()[1]

		pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: hostile}}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		before := restartsOf(ctx)
		for _, text := range []string{"null", "[]", "0", `""`, "{", `{"` + set.Name + `":null}`, `{"` + set.Name + `":[null]}`, strings.Repeat("[", 20_000)} {
			for _, key := range []string{
				v1beta1.SidecarSetInPlaceUpdateStateKey, v1beta1.SidecarSetHashKey, v1beta1.SidecarSetHashWithoutImageKey, v1beta1.SidecarSetWorkingHotUpgradeKey,
				v1beta1.InPlaceUpdateStateKey, v1beta1.InPlaceUpdateGraceKey, v1beta1.RuntimeContainerMetaKey, v1beta1.MatchedWorkloadSpreadKey,
				v1beta1.ContainerProbeContextKey, v1beta1.PodProbeMarkerListKey,
			} {
				Expect(writeAnnotations(ctx, shared.k8s, pod, text, key)).To(Equal(1), "%s is not written", key)
			}
		}
		u.kubectl("patch", "sidecarset", set.Name, "--type=json", "-p", `[{"op": "replace", "path": "/spec/containers/0/image", "value": "busybox:1.35"}]`)
		u.kubectl("patch", "cloneset", "web", "--type=json", "-p", `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.29"}]`)
		Eventually(func() string {
			return u.kubectl("get", "pod", healthy, "-o", `jsonpath={.spec.containers[?(@.name=="shipper")].image} {.spec.containers[?(@.name=="main")].image}`)
		}, time.Minute).Should(Equal("busybox:1.35 nginx:1.29"))
		Expect(restartsOf(ctx)).To(Equal(before))
	}, SpecTimeout(6*time.Minute))
})
