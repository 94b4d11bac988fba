// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/openkruise"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is a cluster in memory with nodes of zones a and b, the CloneSet shop/web and a
// WorkloadSpread of it.
type world struct {
	*testing.T
	api     client.WithWatch
	engine  *engine.Engine
	events  *record.FakeRecorder
	rounds  *explain.Store
	targets *spread.Targets
	book    *spread.Recorder
	r       *Reconciler
	now     time.Time
	key     client.ObjectKey
	created int
	mu      sync.Mutex
	writes  []string
}

func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e := rules.EngineWith(t, engine.WithPatience(50))
	return e
}

func newWorld(t *testing.T, edit func(*kruise.WorkloadSpread), more ...client.Object) *world {
	t.Helper()
	return newWorldOf(t, newEngine(t), edit, more...)
}

func newWorldOf(t *testing.T, e *engine.Engine, edit func(*kruise.WorkloadSpread), more ...client.Object) *world {
	t.Helper()
	w := &world{T: t, engine: e, events: record.NewFakeRecorder(10_000), rounds: explain.NewStore(), now: time.Unix(1_700_000_000, 0), key: client.ObjectKey{Namespace: "shop", Name: "web"}}
	objects := more
	if len(more) == 0 || edit != nil {
		s := &kruise.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "ws", Generation: 1}}
		s.Spec.TargetReference = kruise.TargetReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}
		s.Spec.Subsets = []kruise.WorkloadSpreadSubset{
			{Name: "a", MaxReplicas: ptr.To(intstr.FromInt(2)), RequiredNodeSelector: zone("a"), Patch: runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"subset":"a"}}}`)}},
			{Name: "b", RequiredNodeSelector: zone("b"), Tolerations: []corev1.Toleration{{Key: "virtual", Operator: corev1.TolerationOpExists}}},
		}
		if edit != nil {
			edit(s)
		}
		set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
		set.Spec.Replicas = ptr.To[int32](10)
		objects = append(objects, s, set)
	}
	for _, name := range []string{"a", "b"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, Labels: map[string]string{"topology.kubernetes.io/zone": name}}})
	}
	noted := func(verb string, o client.Object) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes = append(w.writes, verb+" "+o.GetName())
	}
	scheme := apiserver.Scheme(t)
	w.api = fakeclient.NewClientBuilder(scheme).WithObjects(fakeclient.AddNamespaces(objects...)...).
		WithStatusSubresource(&kruise.WorkloadSpread{}, &kruise.CloneSet{}, &corev1.Pod{}).
		WithIndex(&corev1.Pod{}, rollout.OwnerIndex, rollout.OwnerUID).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				noted("patch", o)
				return c.Patch(ctx, o, p, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				noted("delete", o)
				return c.Delete(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				noted(sub, o)
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	clock := func() time.Time { return w.now }
	w.targets = spread.NewTargets(w.api, w.api, scale.NewFinder(w.api, nil), "kruise-system", clock)
	w.book = w.newBook()
	w.r = New(reconcile.Deps{Client: w.api, Events: w.events, Engine: w.engine, Rounds: w.rounds, Now: clock}, w.targets, w.book)
	return w
}

// newBook is that of another replica of the manager.
func (w *world) newBook() *spread.Recorder {
	return spread.NewRecorder(w.api, w.api, w.engine, w.targets, spread.ParseVersions("deployment,replicaset"), spread.WithClock(func() time.Time { return w.now }), spread.WithPace(0))
}

func zone(name string) *corev1.NodeSelectorTerm {
	return &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}
}

func (w *world) get() *kruise.WorkloadSpread {
	w.Helper()
	s := &kruise.WorkloadSpread{}
	if err := w.api.Get(w.Context(), w.key, s); err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *world) reconcile() time.Duration {
	w.Helper()
	res, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: w.key})
	if err != nil {
		w.Fatal(err)
	}
	return res.RequeueAfter
}

// pod is one as the controller of the CloneSet would create it.
func (w *world) pod() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.created++
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("web-%05d", w.created), Namespace: "shop", UID: types.UID(fmt.Sprint("pod-", w.created)), Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(w.now),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web", UID: "web", Controller: ptr.To(true)}},
	}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
}

// admit has a pod let in as the webhook does, and says of which subset it is.
func (w *world) admit(ctx context.Context, book *spread.Recorder, pod *corev1.Pod, dryRun bool) (string, error) {
	s, err := w.targets.FindSpread(ctx, "shop", pod)
	if err != nil || s == nil {
		return "", err
	}
	at, err := book.Create(ctx, s, pod, dryRun)
	if err != nil || at == nil {
		return "", err
	}
	return at.Subset.Name, spread.InjectSubset(s, at, pod)
}

// create lets pods in and stores them, on the node of their zone if they are to run.
func (w *world) create(n int, run bool) (out []*corev1.Pod) {
	w.Helper()
	for range n {
		pod := w.pod()
		subset, err := w.admit(w.Context(), w.book, pod, false)
		if err != nil {
			w.Fatal(err)
		}
		if run && subset != "" {
			pod.Spec.NodeName, pod.Status.Phase = "node-"+subset, corev1.PodRunning
		}
		if err := w.api.Create(w.Context(), pod); err != nil {
			w.Fatal(err)
		}
		out = append(out, pod)
	}
	return out
}

// counts are the subsets of the status, such as "a=2/0 b=5/-1": replicas and missing.
func (w *world) counts() string {
	w.Helper()
	var out []string
	for _, s := range w.get().Status.SubsetStatuses {
		text := fmt.Sprintf("%s=%d/%d", s.Name, s.Replicas, s.MissingReplicas)
		if n := len(s.CreatingPods); n > 0 {
			text += fmt.Sprintf("+%d", n)
		}
		if n := len(s.DeletingPods); n > 0 {
			text += fmt.Sprintf("-%d", n)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func (w *world) told() (out []string) {
	for {
		select {
		case e := <-w.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func (w *world) subsets() map[string]int {
	w.Helper()
	list := &corev1.PodList{}
	if err := w.api.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	out := map[string]int{}
	for i := range list.Items {
		if m := spread.MarkOf(&list.Items[i]); m != nil {
			out[m.Subset]++
		} else {
			out[""]++
		}
	}
	return out
}

// The first subset gets as many pods as it may have, and the next one the rest.
func TestPodsFillSubsetsInOrder(t *testing.T) {
	w := newWorld(t, nil)
	pods := w.create(5, true)
	if got := w.subsets(); got["a"] != 2 || got["b"] != 3 {
		t.Fatalf("the subsets have %v", got)
	}
	first, third := pods[0], pods[2]
	if first.Labels["subset"] != "a" || first.Annotations[kruise.MatchedWorkloadSpreadKey] != `{"name":"web","subset":"a"}` || len(third.Spec.Tolerations) != 1 ||
		third.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values[0] != "b" {
		t.Errorf("the pods are %+v and %+v", first.ObjectMeta, third.Spec)
	}
	if got := w.counts(); got != "a=0/0+2 b=0/-1" {
		t.Errorf("recorded is %s", got)
	}
	w.reconcile()
	if got := w.counts(); got != "a=2/0 b=3/-1" {
		t.Errorf("counted is %s", got)
	}
	if a, ok := w.rounds.ExplainPlacement("shop", "web-00003"); !ok || !strings.Contains(a.Message, "It is in subset b of WorkloadSpread web") {
		t.Errorf("explained is %+v", a)
	}
}

// While only counts change the status is written now and then, and its last state always. A pod
// has its deletion cost from the beginning.
func TestManyPodsCostFewWrites(t *testing.T) {
	w := newWorld(t, nil)
	w.r.StatusInterval = 500 * time.Millisecond
	w.create(1, true)
	w.reconcile()
	w.writes = nil
	for range 4 {
		w.create(1, true)
		w.now = w.now.Add(100 * time.Millisecond)
		w.writes = nil
		if again := w.reconcile(); again == 0 || again > 500*time.Millisecond || len(w.writes) > 0 {
			t.Errorf("written was %v, and it looks again after %s", w.writes, again)
		}
	}
	if got := w.counts(); got != "a=1/0+1 b=0/-1" {
		t.Errorf("before the next write counted is %s", got)
	}
	w.now = w.now.Add(100 * time.Millisecond)
	w.reconcile()
	if got := w.counts(); got != "a=2/0 b=3/-1" || !slices.Equal(w.writes, []string{"status web"}) {
		t.Errorf("counted is %s, by %v", got, w.writes)
	}
	s := w.get()
	s.Spec.Subsets[0].MaxReplicas, s.Generation = ptr.To(intstr.FromInt(3)), 2
	if err := w.api.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if got := w.counts(); got != "a=2/1 b=3/-1" {
		t.Errorf("a new limit counts at once: %s", got)
	}
}

// A subset that is full, gone, without room, or selects no node because a zone is misspelt is
// named by the condition, until it is right again.
func TestTheConditionNamesTheSubset(t *testing.T) {
	w := newWorld(t, func(s *kruise.WorkloadSpread) { s.Spec.Subsets[0].RequiredNodeSelector = zone("aa") })
	tell := func(reason, text string) {
		t.Helper()
		w.reconcile()
		c := meta.FindStatusCondition(w.get().Status.Conditions, kruise.WorkloadSpreadPlacing)
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
			t.Errorf("the condition is %+v, want %s with %q", c, reason, text)
		}
	}
	edit := func(change func(*kruise.WorkloadSpread)) {
		t.Helper()
		s := w.get()
		change(s)
		s.Generation++
		if err := w.api.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	waits := w.create(1, false)[0]
	tell(kruise.WorkloadSpreadNoNodesReason, ": a.")
	edit(func(s *kruise.WorkloadSpread) { s.Spec.Subsets[0].RequiredNodeSelector = zone("a") })
	tell(kruise.WorkloadSpreadPlacingReason, "")
	waits.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if err := w.api.Status().Update(t.Context(), waits); err != nil {
		t.Fatal(err)
	}
	tell(kruise.WorkloadSpreadPlacingReason, "")
	w.now = w.now.Add(31 * time.Second)
	tell(kruise.WorkloadSpreadPodUnschedulableReason, "for 30s, so they wait: a (1).")
	edit(func(s *kruise.WorkloadSpread) { s.Spec.Subsets[1].MaxReplicas = ptr.To(intstr.FromInt(1)) })
	w.create(3, true)
	tell(kruise.WorkloadSpreadSubsetsFullReason, "(a, b)")
	if next := w.create(1, true)[0]; spread.MarkOf(next) != nil {
		t.Errorf("the next pod is %+v", next.Annotations)
	}
	edit(func(s *kruise.WorkloadSpread) { s.Spec.Subsets[0].Name, s.Spec.Subsets[1].MaxReplicas = "new", nil })
	tell(kruise.WorkloadSpreadUnknownSubsetReason, "2 of a")
	if err := w.api.Delete(t.Context(), waits); err != nil {
		t.Fatal(err)
	}
	tell(kruise.WorkloadSpreadUnknownSubsetReason, "1 of a")
}

// A dry run says where a pod would go, and counts nothing.
func TestADryRunDoesNotCount(t *testing.T) {
	w := newWorld(t, nil)
	for range 5 {
		if subset, err := w.admit(t.Context(), w.book, w.pod(), true); err != nil || subset != "a" {
			t.Fatalf("%s, %v", subset, err)
		}
	}
	if len(w.writes) > 0 || w.get().Status.SubsetStatuses != nil {
		t.Errorf("written was %v", w.writes)
	}
}

// A request that comes twice for a pod that has a name is recorded once.
func TestARequestThatComesTwice(t *testing.T) {
	w := newWorld(t, nil)
	pod := w.pod()
	for range 3 {
		if subset, err := w.admit(t.Context(), w.book, pod.DeepCopy(), false); err != nil || subset != "a" {
			t.Fatalf("%s, %v", subset, err)
		}
	}
	if got := w.counts(); got != "a=0/1+1 b=0/-1" {
		t.Errorf("recorded is %s", got)
	}
}

// Fifty pods at once, before two replicas of the manager of which one dies: no subset gets
// more than it may have, and the writes are fewer than the pods.
func TestManyPodsAtOnce(t *testing.T) {
	w := newWorld(t, func(s *kruise.WorkloadSpread) {
		s.Spec.Subsets[0].MaxReplicas = ptr.To(intstr.FromInt(20))
		s.Spec.Subsets[1].MaxReplicas = ptr.To(intstr.FromInt(20))
	})
	other := w.newBook()
	dies, die := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	for i := range 50 {
		pod := w.pod()
		pod.Name, pod.GenerateName = "", "web-"
		all.Go(func() {
			ctx, book := t.Context(), w.book
			if i%2 == 1 {
				ctx, book = dies, other
			}
			subset, err := w.admit(ctx, book, pod, false)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				subset = "refused"
			}
			if got[subset]++; got[subset] == 3 {
				die()
			}
		})
	}
	all.Wait()
	die()
	if got["a"] > 20 || got["b"] > 20 || got["a"]+got["b"]+got[""]+got["refused"] != 50 {
		t.Errorf("the pods went to %v", got)
	}
	s := w.get().Status.SubsetStatuses
	if len(s[0].CreatingPods) < got["a"] || len(s[0].CreatingPods) > 20 || len(s[1].CreatingPods) > 20 {
		t.Errorf("%d and %d pods are recorded", len(s[0].CreatingPods), len(s[1].CreatingPods))
	}
	if len(w.writes) >= 50 {
		t.Errorf("%d writes for 50 pods", len(w.writes))
	}
	t.Logf("%v with %d writes", got, len(w.writes))
}

// Records of pods that never came are dropped with an event, and what other clients do to the
// counts does not last: they are counted from the pods.
func TestCountsAreThoseOfThePods(t *testing.T) {
	w := newWorld(t, nil)
	w.create(1, true)
	if _, err := w.admit(t.Context(), w.book, w.pod(), false); err != nil { // its answer is lost
		t.Fatal(err)
	}
	w.reconcile()
	if got := w.counts(); got != "a=1/0+1 b=0/-1" {
		t.Fatalf("counted is %s", got)
	}
	w.now = w.now.Add(31 * time.Second)
	w.reconcile()
	if got, told := w.counts(), w.told(); got != "a=1/1 b=0/-1" || len(told) != 1 || !strings.HasPrefix(told[0], "Warning CreatePodFailed") {
		t.Errorf("counted is %s, told %q", got, told)
	}
	s := w.get()
	s.Status.SubsetStatuses[0].MissingReplicas, s.Status.VersionedSubsetStatuses[kruise.WorkloadSpreadVersionIgnored][0].MissingReplicas = 7, 7
	s.Status.VersionedSubsetStatuses[kruise.WorkloadSpreadVersionIgnored][0].Replicas = 0
	if err := w.api.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if got := w.counts(); got != "a=1/1 b=0/-1" {
		t.Errorf("counted is %s", got)
	}
}

// The place of a pod that goes is free at once, and is not free indefinitely if the pod stays.
func TestThePlaceOfAPodThatGoes(t *testing.T) {
	w := newWorld(t, nil)
	pods := w.create(3, true)
	w.reconcile()
	gone := pods[0]
	if err := w.book.Delete(t.Context(), w.get(), gone, spread.MarkOf(gone)); err != nil {
		t.Fatal(err)
	}
	if got := w.counts(); got != "a=2/1-1 b=1/-1" {
		t.Fatalf("recorded is %s", got)
	}
	if next := w.create(1, true)[0]; spread.MarkOf(next).Subset != "a" {
		t.Errorf("the next pod is %+v", next.Annotations)
	}
	w.reconcile()
	if got := w.counts(); got != "a=3/0-1 b=1/-1" {
		t.Errorf("while it is there counted is %s", got)
	}
	w.now = w.now.Add(16 * time.Second)
	w.reconcile()
	if got, told := w.counts(), w.told(); got != "a=3/0 b=1/-1" || len(told) != 1 || !strings.HasPrefix(told[0], "Warning DeletePodFailed") {
		t.Errorf("counted is %s, told %q", got, told)
	}
	if err := w.api.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if got := w.counts(); got != "a=2/0 b=1/-1" {
		t.Errorf("once it is gone counted is %s", got)
	}
}

// Pods that were there before get the subset that suits their node, but no new node.
func TestPodsThatWereThereBefore(t *testing.T) {
	w := newWorld(t, nil)
	for _, node := range []string{"node-a", "node-b", "node-b", ""} {
		pod := w.pod()
		pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
		if err := w.api.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	w.reconcile()
	if got := w.subsets(); got["a"] != 1 || got["b"] != 2 || got[""] != 1 {
		t.Errorf("the subsets have %v", got)
	}
	pod := &corev1.Pod{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-00001"}, pod); err != nil || pod.Labels["subset"] != "a" {
		t.Errorf("the pod has %v, %v", pod.Labels, err)
	}
	w.reconcile()
	if got := w.counts(); got != "a=1/1 b=2/-1" {
		t.Errorf("counted is %s", got)
	}
}

// Pods of later subsets go first at scale in, and before them those beyond a limit and those
// of no subset.
func TestDeletionCosts(t *testing.T) {
	w := newWorld(t, nil)
	w.create(4, true)
	s := w.get()
	s.Spec.Subsets[0].MaxReplicas = ptr.To(intstr.FromInt(1))
	if err := w.api.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	stray := w.pod()
	if err := w.api.Create(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	list := &corev1.PodList{}
	if err := w.api.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var costs []string
	for _, pod := range list.Items {
		costs = append(costs, pod.Annotations[kruise.PodDeletionCostKey])
	}
	slices.Sort(costs)
	if want := []string{"-100", "-300", "100", "100", "200"}; !slices.Equal(costs, want) {
		t.Errorf("the costs are %v, want %v", costs, want)
	}
	w.writes = nil
	w.reconcile()
	if len(w.writes) > 0 {
		t.Errorf("nothing changed, and written was %v", w.writes)
	}
}

// A subset whose pods find no node gives them up, and gets none until it may have room again.
func TestAdaptiveSpreadsGiveUpASubset(t *testing.T) {
	w := newWorld(t, func(s *kruise.WorkloadSpread) {
		s.Spec.ScheduleStrategy = kruise.WorkloadSpreadScheduleStrategy{
			Type: kruise.AdaptiveWorkloadSpreadScheduleStrategyType, Adaptive: &kruise.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](10)},
		}
	})
	pod := w.create(1, false)[0]
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if err := w.api.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if after := w.reconcile(); after == 0 || after > 11*time.Second {
		t.Errorf("looked at again after %s", after)
	}
	if c := w.get().Status.SubsetStatuses[0].Conditions; len(c) != 1 || c[0].Reason != kruise.WorkloadSpreadSufficientReason {
		t.Errorf("the conditions are %+v", c)
	}
	w.now = w.now.Add(11 * time.Second)
	w.writes = nil
	w.reconcile()
	if c := w.get().Status.SubsetStatuses[0].Conditions; len(c) != 1 || c[0].Status != metav1.ConditionFalse || c[0].Reason != kruise.WorkloadSpreadPodUnschedulableReason {
		t.Errorf("the conditions are %+v", c)
	}
	if i, j := slices.Index(w.writes, "status web"), slices.Index(w.writes, "delete "+pod.Name); i < 0 || j < i {
		t.Errorf("the pod must go after the status is written: %v", w.writes)
	}
	if next := w.create(1, true)[0]; spread.MarkOf(next).Subset != "b" {
		t.Errorf("the next pod is %+v", next.Annotations)
	}
	w.now = w.now.Add(200 * time.Second)
	w.reconcile()
	if next := w.create(1, true)[0]; spread.MarkOf(next).Subset != "b" {
		t.Errorf("before it may have room again a pod is %+v", next.Annotations)
	}
	w.now = w.now.Add(101 * time.Second)
	w.reconcile()
	if told := w.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Normal RecoverSchedulable") {
		t.Errorf("told was %q", told)
	}
	if next := w.create(1, true)[0]; spread.MarkOf(next).Subset != "a" {
		t.Errorf("after that a pod is %+v", next.Annotations)
	}
}

// A new version of a Deployment has the whole subset to itself: pods that surge are not in
// another one for good.
func TestVersionsOfADeploymentCountByThemselves(t *testing.T) {
	w := newWorld(t, func(s *kruise.WorkloadSpread) {
		s.Spec.TargetReference = kruise.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	}, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "dep"}})
	for i, hash := range []string{"old", "new"} {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + hash, UID: types.UID("rs-" + hash), Labels: map[string]string{"pod-template-hash": hash}, Annotations: map[string]string{DeploymentRevisionKey: fmt.Sprint(i + 1)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "dep", Controller: ptr.To(true)}},
		}}
		if err := w.api.Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			pod := w.pod()
			pod.Labels["pod-template-hash"] = hash
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}}
			subset, err := w.admit(t.Context(), w.book, pod, false)
			if err != nil {
				t.Fatal(err)
			}
			pod.Spec.NodeName, pod.Status.Phase = "node-"+subset, corev1.PodRunning
			if err := w.api.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.reconcile()
	s := w.get().Status
	for _, hash := range []string{"old", "new"} {
		if v := s.VersionedSubsetStatuses[hash]; len(v) != 2 || v[0].Replicas != 2 || v[0].MissingReplicas != 0 || v[1].Replicas != 1 {
			t.Errorf("version %s has %+v", hash, v)
		}
	}
	if got := w.counts(); got != "a=4/0 b=2/-1" {
		t.Errorf("all versions have %s", got)
	}
	old := &corev1.Pod{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-00001"}, old); err != nil || old.Annotations[kruise.PodDeletionCostKey] != "100" {
		t.Errorf("an old pod of the first subset costs %q, %v", old.Annotations[kruise.PodDeletionCostKey], err)
	}
}

// Pods of StatefulSets go by their ordinals, and nothing is written for them.
func TestPodsOfStatefulSetsGoByOrdinals(t *testing.T) {
	w := newWorld(t, func(s *kruise.WorkloadSpread) {
		s.Spec.TargetReference = kruise.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	})
	for ordinal, want := range []string{"a", "a", "b", "b"} {
		pod := w.pod()
		pod.Name = fmt.Sprintf("web-%d", ordinal)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "sts", Controller: ptr.To(true)}}
		if subset, err := w.admit(t.Context(), w.book, pod, false); err != nil || subset != want {
			t.Errorf("%s went to %q, want %q: %v", pod.Name, subset, want, err)
		}
	}
	if len(w.writes) > 0 {
		t.Errorf("written was %v", w.writes)
	}
}

// A kind of the white list is followed, by way of what is between it and its pods, as soon as
// the ConfigMap says so.
func TestTheWhiteList(t *testing.T) {
	w := newWorld(t, func(s *kruise.WorkloadSpread) {
		s.Spec.TargetReference = kruise.TargetReference{APIVersion: "example.com/v1", Kind: "Game", Name: "web"}
	})
	pod := w.pod()
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Game", Name: "web", UID: "game", Controller: ptr.To(true)}}
	if s, err := w.targets.FindSpread(t.Context(), "shop", pod); err != nil || s != nil {
		t.Fatalf("before it is listed: %v, %v", s, err)
	}
	list, _ := json.Marshal(map[string]any{"workloads": []map[string]any{{"Group": "example.com", "Version": "v1", "Kind": "Game"}}})
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-configuration"}, Data: map[string]string{kruise.WorkloadSpreadWhiteListKey: string(list)}}
	if err := w.api.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if s, err := w.targets.FindSpread(t.Context(), "shop", pod); err != nil || s != nil {
		t.Errorf("a moment later it is %v, %v: the white list is read every ten seconds", s, err)
	}
	w.now = w.now.Add(11 * time.Second)
	if s, err := w.targets.FindSpread(t.Context(), "shop", pod); err != nil || s == nil {
		t.Errorf("once it is listed it is %v, %v", s, err)
	}
	pod.OwnerReferences[0].Kind = "Puzzle"
	if s, err := w.targets.FindSpread(t.Context(), "shop", pod); err != nil || s != nil {
		t.Errorf("a kind that is not listed is followed: %v, %v", s, err)
	}
}

// What OpenKruise left is taken over: no pod is moved or marked anew. The status gets the conditions that OpenKruise does not have, once.
func TestTakingOverFromOpenKruise(t *testing.T) {
	w := newWorld(t, nil, openkruise.Objects(t, apiserver.Scheme(t), "testdata/openkruise.yaml")...)
	w.key.Name = "spread"
	w.now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	before := w.get().Status
	for range 3 {
		w.reconcile()
	}
	if len(w.writes) != 1 || w.writes[0] != "status spread" {
		t.Errorf("written was %v", w.writes)
	}
	after := w.get().Status
	kstatus.RemoveConditions(&after)
	if !isSameStatus(&before, &after) {
		t.Errorf("the status was %+v, and is %+v", before, after)
	}
}
