// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	fakemetadata "k8s.io/client-go/metadata/fake"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/rollout"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/browser"
)

// largeRollout is how many pods the page of a workload has to show, and changedPods how many of them change at once.
const (
	largeRollout = 5_000
	changedPods  = 1_000
)

// longTasks has the browser note tasks that keep a page from answering for more than 50 ms.
const longTasks = `(() => {
	window.longest = 0;
	new PerformanceObserver((list) => { for (const e of list.getEntries()) window.longest = Math.max(window.longest, e.duration); }).observe({ type: "longtask" });
})()`

// An API server takes minutes to create 5,000 pods, so these are in a client in memory. The figures are logged: bytes and time of the
// server, and how long the page does not answer at most.
func TestALargeRolloutInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("it has 5,000 pods")
	}
	set := &kruise.CloneSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: kruise.GroupVersion.String(), Kind: "CloneSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"},
		Spec:       kruise.CloneSetSpec{Replicas: ptr.To(int32(largeRollout)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     kruise.CloneSetStatus{Replicas: largeRollout, UpdateRevision: "web-new", ExpectedUpdatedReplicas: largeRollout},
	}
	raw, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		t.Fatal(err)
	}
	lists := map[schema.GroupVersionResource]string{}
	for _, k := range rollout.ListKinds() {
		lists[k.GroupVersionResource] = k.Kind + "List"
	}
	pods := fake.NewClientset()
	newLargePod := func(i int, revision string) *corev1.Pod {
		p := newPod(fmt.Sprintf("web-%04d", i), revision, time.Now())
		p.Namespace, p.UID, p.Spec.NodeName = "default", types.UID(fmt.Sprint(i)), fmt.Sprint("node-", i%200)
		return p
	}
	for i := range largeRollout {
		if err := pods.Tracker().Add(newLargePod(i, "web-old")); err != nil {
			t.Fatal(err)
		}
	}
	c := newCollector(&target.Access{
		Core: pods, Objects: fakedynamic.NewSimpleDynamicClientWithCustomListKinds(apiruntime.NewScheme(), lists, &unstructured.Unstructured{Object: raw}),
		Metadata: fakemetadata.NewSimpleMetadataClient(fakemetadata.NewTestScheme()),
	}, "default")
	c.asker = &stubManagers{released: true}
	v := newVisitor(t, serveForTest(t, c), "en")
	v.run(`location.hash = "#/workloads/clonesets.apps.kruise.io/default/web"`)
	squares := func(class string) string {
		return fmt.Sprintf(`document.querySelectorAll(".squares .pod%s").length === %d`, class, largeRollout)
	}
	v.must(v.page.WaitUntil(squares(""), patience))
	v.run(longTasks)
	before, began := processTime(), time.Now()
	for i := range changedPods {
		if _, err := pods.CoreV1().Pods("default").Update(t.Context(), newLargePod(i, "web-new"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if i%50 == 49 { // the client in memory fails if a hundred changes wait to be watched
			apiserver.Eventually(t, "the dashboard sees the change", func() string { return c.missingChange(i) })
		}
	}
	v.waitFor(".group h3", fmt.Sprintf("(%[1]d/%[1]d)", changedPods))
	longest, err := browser.Evaluate[float64](v.page, "window.longest")
	v.must(err)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("%d of %d pods changed within %s; the test and the server used %s of CPU and have %d MiB on the heap; the page did not answer for %.0f ms at most",
		changedPods, largeRollout, time.Since(began).Round(time.Millisecond), (processTime() - before).Round(time.Millisecond), memory.HeapAlloc>>20, longest)
	v.checkConsole()
}

// missingChange says that the page of the workload has not seen a change of a pod yet.
func (c *collector) missingChange(i int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, source := range c.rollouts {
		pod, ok, err := source.pods.informer.GetStore().GetByKey(fmt.Sprintf("default/web-%04d", i))
		if err == nil && ok && pod.(*corev1.Pod).Labels["controller-revision-hash"] == "web-new" {
			return ""
		}
	}
	return fmt.Sprintf("pod %d is not changed", i)
}

// processTime is the CPU time of this process.
func processTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
