// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podMetrics serves the resource metrics of pods (metrics.k8s.io), as metrics-server does, by loads that a spec sets. The pods of an
// application share its load.
type podMetrics struct {
	mu    sync.Mutex
	loads map[string]int64 // bytes of memory, by the label app
}

func (m *podMetrics) setLoad(app string, mebibytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loads[app] = mebibytes << 20
}

func (m *podMetrics) loadOf(app string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads[app]
}

// ServeHTTP answers discovery and lists of the metrics of pods.
func (m *podMetrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const group = "/apis/metrics.k8s.io/v1beta1"
	w.Header().Set("Content-Type", "application/json")
	namespace, isList := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, group+"/namespaces/"), "/pods")
	switch {
	case r.URL.Path == group:
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"metrics.k8s.io/v1beta1","resources":[
			{"name":"pods","singularName":"","namespaced":true,"kind":"PodMetrics","verbs":["get","list"]}]}`)
	case isList && !strings.Contains(namespace, "/"):
		items, err := m.listMetrics(r.Context(), namespace, r.URL.Query().Get("labelSelector"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": map[string]any{}, "items": items})
	default:
		http.NotFound(w, r)
	}
}

func (m *podMetrics) listMetrics(ctx context.Context, namespace, selector string) ([]map[string]any, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := shared.k8s.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return nil, err
	}
	sharing := map[string]int64{}
	for i := range pods.Items {
		sharing[pods.Items[i].Labels["app"]]++
	}
	out := []map[string]any{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		app := pod.Labels["app"]
		out = append(out, map[string]any{
			"metadata": map[string]any{"name": pod.Name, "namespace": namespace, "labels": pod.Labels}, "timestamp": time.Now().UTC().Format(time.RFC3339), "window": "15s",
			"containers": []map[string]any{{"name": "main", "usage": map[string]string{"cpu": "1m", "memory": strconv.FormatInt(m.loadOf(app)/sharing[app], 10)}}},
		})
	}
	return out, nil
}

// servePodMetrics has the API server take resource metrics from a server of this process until the spec ends.
func servePodMetrics(u *user) *podMetrics {
	GinkgoHelper()
	m := &podMetrics{loads: map[string]int64{}}
	server := httptest.NewUnstartedServer(m)
	Expect(server.Listener.Close()).To(Succeed())
	var err error
	server.Listener, err = (&net.ListenConfig{}).Listen(u.ctx, "tcp", net.JoinHostPort(shared.cluster.State.Plan.Host().String(), "0"))
	Expect(err).NotTo(HaveOccurred())
	server.StartTLS()
	DeferCleanup(server.Close)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		u.ctx = ctx
		u.kubectl("delete", "apiservice", "v1beta1.metrics.k8s.io", "--ignore-not-found")
	})
	u.apply(strings.NewReplacer("NAMESPACE", u.namespace, "HOST", host, "PORT", port).Replace(`
apiVersion: v1
kind: Service
metadata: {name: metrics}
spec: {ports: [{name: https, port: 443, targetPort: PORT}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: metrics, labels: {kubernetes.io/service-name: metrics}}
addressType: IPv4
endpoints: [{addresses: [HOST], conditions: {ready: true}}]
ports: [{name: https, port: PORT, protocol: TCP}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: NAMESPACE, name: metrics, port: 443}
`))
	available := func() string {
		return u.kubectl("get", "apiservice", "v1beta1.metrics.k8s.io", "-o", `jsonpath={.status.conditions[?(@.type=="Available")]}`)
	}
	Eventually(available).Should(ContainSubstring(`"status":"True"`))
	return m
}

var _ = Describe("a HorizontalPodAutoscaler", func() {
	It("scales workloads of all kinds that have replicas, by the real controller", func(ctx SpecContext) {
		if shared.cluster == nil {
			Skip("it needs an API server on this machine")
		}
		u := newUser(ctx)
		m := servePodMetrics(u)
		const pods = `selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "nginx:1.28"}]}}`
		specs := map[string]string{
			"clone":  `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: NAME}, spec: {replicas: 2, ` + pods + `}}`,
			"asts":   `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: NAME}, spec: {replicas: 2, serviceName: NAME, podManagementPolicy: Parallel, ` + pods + `}}`,
			"united": `{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {name: NAME}, spec: {replicas: 2, selector: {matchLabels: {app: NAME}}, topology: {subsets: [{name: a}, {name: b}]}, template: {cloneSetTemplate: {metadata: {labels: {app: NAME}}, spec: {` + pods + `}}}}}`,
		}
		scales := map[string]string{"clone": "apps.kruise.io/v1beta1, kind: CloneSet", "asts": "apps.kruise.io/v1beta1, kind: StatefulSet", "united": "apps.kruise.io/v1alpha1, kind: UnitedDeployment"}
		kinds := slices.Sorted(maps.Keys(specs))
		for _, name := range kinds {
			m.setLoad(name, 200)
			u.apply(strings.ReplaceAll(specs[name], "NAME", name))
			// It scales in at once, and not five minutes later.
			u.apply(fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: %s}, spec: {minReplicas: 1, maxReplicas: 5, scaleTargetRef: {apiVersion: %s, name: %s},
				metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 100Mi}}}], behavior: {scaleDown: {stabilizationWindowSeconds: 0}}}}`, name, scales[name], name))
		}
		state := func() (out []string) {
			for _, name := range kinds {
				hpa := u.kubectl("get", "hpa", name, "-o", `jsonpath={.status.desiredReplicas} of {.status.currentReplicas} {.status.conditions[?(@.type=="ScalingActive")].status}`)
				out = append(out, fmt.Sprintf("%s: %s, %d ready", name, hpa, len(u.readyPods(name))))
			}
			return out
		}
		want := func(n int) (out []string) {
			for _, name := range kinds {
				out = append(out, fmt.Sprintf("%s: %d of %d True, %d ready", name, n, n, n))
			}
			return out
		}
		Eventually(state).Should(Equal(want(2)))
		for _, step := range []struct {
			load int64
			pods int
		}{{400, 4}, {80, 1}} {
			for _, name := range kinds {
				m.setLoad(name, step.load)
			}
			Eventually(state).Should(Equal(want(step.pods)))
		}
	}, SpecTimeout(8*time.Minute))
})

// readyPods are the names of the pods of an application that are ready.
func (u *user) readyPods(app string) (out []string) {
	for name, pod := range u.pods(app) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				out = append(out, name)
			}
		}
	}
	return out
}
