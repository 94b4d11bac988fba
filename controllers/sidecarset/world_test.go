// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/sidecarset/injection"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/sidecars"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is a cluster with a SidecarSet, whose cache shows everything at once, and whose kubelets run what the specs say when
// the test lets them.
type world struct {
	t      *testing.T
	api    client.WithWatch
	engine *engine.Engine
	c      *rollout.Controller
	events *record.FakeRecorder
	clock  *clocktesting.FakeClock
	// listed are how many objects of each kind lists have answered.
	listed map[string]int
	kind   *Kind
	missed *MissedPodFinder
	// lacks is how many pods lack the containers, by reason.
	lacks map[string]int
	// broken are images whose containers never get ready.
	broken []string
	// ended are the containers that have ended and are not started again, by the names of the pod and the container.
	ended map[string]corev1.ContainerStateTerminated
	// rounds explain what was decided last.
	rounds *explain.Store
	// spared is the pod, with its namespace, that its budget does not let be updated.
	spared string
	// asked are the pods about which budgets were asked.
	asked []string
	// unasked is the pod, with its namespace, about which no budget can be asked.
	unasked string
	// refuses reports whether the budget of a pod refuses an update; nil where the budget of no other pod than spared does.
	refuses func(*corev1.Pod) bool
	// refusal is the answer to patches of pods; they are made if it is nil.
	refusal error
	// onPatch is called before a pod is patched, and may refuse that.
	onPatch func(*corev1.Pod) error
	// unlisted is the answer to lists; they are answered if it is nil.
	unlisted error
	// statusRefusal is the answer to patches of the status of pods.
	statusRefusal error
}

func newWorld(t *testing.T, module string, objects ...client.Object) *world {
	t.Helper()
	return newWorldOf(t, rules.Engine(t, module), objects...)
}

func newWorldOf(t *testing.T, e *engine.Engine, objects ...client.Object) *world {
	t.Helper()
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "shop"}}})
	w := &world{t: t, engine: e, rounds: explain.NewStore(), events: record.NewFakeRecorder(10_000), clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), listed: map[string]int{}}
	scheme := apiserver.Scheme(t)
	w.api = fakeclient.NewClientBuilder(scheme).WithObjects(objects...).
		WithStatusSubresource(&corev1.Pod{}, &kruise.SidecarSet{}).
		WithIndex(&corev1.Pod{}, InjectedIndex, InjectedIn).
		WithIndex(&corev1.Pod{}, matching.LabelsIndex, matching.IndexLabels).
		WithIndex(&kruise.SidecarSet{}, matching.KeysIndex, matching.IndexKeys).
		WithIndex(&appsv1.ControllerRevision{}, rollout.OwnerIndex, rollout.OwnerUID).
		WithInterceptorFuncs(interceptor.Funcs{List: w.list, Patch: w.patch, SubResourcePatch: w.patchStatus}).Build()
	judge := sidecars.NewJudge(sidecars.Options{Cached: w.api, Live: w.api, Engine: e, Namespace: "kruise-system"})
	w.missed = &MissedPodFinder{
		Given: judge.DecideSidecars, Live: w.api, Count: func(_ string, pods map[string]int) { w.lacks = pods },
		Sent: func(_ string, labels map[string]string) bool { return labels["sent"] != "never" },
	}
	w.kind = New(w.api, "kruise-system", w.events, WithMissed(w.missed))
	w.start(w.api)
	return w
}

// start starts a controller that writes by a client, and remembers nothing.
func (w *world) start(writes client.Client) {
	w.c = rollout.New(w.kind, reconcile.Deps{Client: writes, Live: w.api, Events: w.events, Engine: w.engine, Rounds: w.rounds, Now: w.clock.Now},
		rollout.WithParallelWrites(1), rollout.WithBudget(w.budget))
}

// list counts what a list answers.
func (w *world) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	if w.unlisted != nil {
		return w.unlisted
	}
	err := c.List(ctx, list, opts...)
	w.listed[fmt.Sprintf("%T", list)] += meta.LenList(list)
	return err
}

func (w *world) patch(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if _, ok := o.(*corev1.Pod); ok && w.refusal != nil {
		return w.refusal
	}
	if pod, ok := o.(*corev1.Pod); ok && w.onPatch != nil {
		if err := w.onPatch(pod); err != nil {
			return err
		}
	}
	return c.Patch(ctx, o, patch, opts...)
}

func (w *world) patchStatus(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if _, ok := o.(*corev1.Pod); ok && w.statusRefusal != nil {
		return w.statusRefusal
	}
	return c.SubResource(sub).Patch(ctx, o, patch, opts...)
}

func (w *world) budget(_ context.Context, pod *corev1.Pod) (*decision.Hold, error) {
	w.asked = append(w.asked, pod.Name)
	switch key := client.ObjectKeyFromObject(pod).String(); {
	case key == w.spared, w.refuses != nil && w.refuses(pod):
	case key == w.unasked:
		return nil, errors.New("no answer")
	default:
		return nil, nil
	}
	return &decision.Hold{Rule: "protection.budget.exceeded", Reason: "BudgetExceeded", Message: "No more."}, nil
}

// round reconciles a SidecarSet once.
func (w *world) round(name string) {
	w.t.Helper()
	if _, err := w.c.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
		w.t.Fatal(err)
	}
	w.clock.Step(time.Minute)
	for _, p := range w.pods() {
		w.c.PodEvents().Create(w.t.Context(), event.CreateEvent{Object: p}, &nowhere{})
	}
}

func (w *world) pods() []*corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	if err := w.api.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	out := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out
}

func (w *world) set(name string) *kruise.SidecarSet {
	w.t.Helper()
	set := &kruise.SidecarSet{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Name: name}, set); err != nil {
		w.t.Fatal(err)
	}
	return set
}

// edit changes a SidecarSet as a user does.
func (w *world) edit(name string, change func(*kruise.SidecarSet)) {
	w.t.Helper()
	set := w.set(name)
	change(set)
	set.Generation++
	if err := w.api.Update(w.t.Context(), set); err != nil {
		w.t.Fatal(err)
	}
}

// run has the kubelets run the containers of the pods' specs, but of those that are named.
func (w *world) run(but ...string) {
	w.t.Helper()
	for _, p := range w.pods() {
		if slices.Contains(but, p.Name) {
			continue
		}
		p.Status.Phase, p.Status.ContainerStatuses = corev1.PodRunning, nil
		ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now())}
		for _, c := range p.Spec.Containers {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, ImageID: "id-of-" + c.Image, ContainerID: "run-of-" + c.Name + c.Image, Ready: !slices.Contains(w.broken, c.Image),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.clock.Now())}},
			})
			st := &p.Status.ContainerStatuses[len(p.Status.ContainerStatuses)-1]
			if exit, ok := w.ended[p.Name+"/"+c.Name]; ok {
				st.Ready, st.State, st.ImageID = false, corev1.ContainerState{Terminated: &exit}, "id-of-what-ended"
			}
			if !st.Ready {
				ready.Status = corev1.ConditionFalse
			}
		}
		at := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		if at < 0 {
			p.Status.Conditions = append(p.Status.Conditions, ready)
		} else {
			p.Status.Conditions[at] = ready
		}
		if err := w.api.Status().Update(w.t.Context(), p); err != nil {
			w.t.Fatal(err)
		}
	}
}

// images are those of a container in all pods, with how many pods have each.
func (w *world) images(container string) string {
	count := map[string]int{}
	for _, p := range w.pods() {
		if c := containerOf(p, container); c != nil {
			count[c.Image]++
		}
	}
	var out []string
	for _, image := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%s×%d", image, count[image]))
	}
	return strings.Join(out, " ")
}

// with are the pods whose container has an image, by name.
func (w *world) with(container, image string) string {
	var out []string
	for _, p := range w.pods() {
		if c := containerOf(p, container); c != nil && c.Image == image {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// told are the events since the last call that have a word.
func (w *world) told(word string) (out []string) {
	for {
		select {
		case text := <-w.events.Events:
			if strings.Contains(text, word) {
				out = append(out, text)
			}
		default:
			return out
		}
	}
}

type nowhere struct {
	queue
}

type queue = interface {
	Add(reconcile.Request)
	AddAfter(reconcile.Request, time.Duration)
	AddRateLimited(reconcile.Request)
	Forget(reconcile.Request)
	NumRequeues(reconcile.Request) int
	Len() int
	Get() (reconcile.Request, bool)
	Done(reconcile.Request)
	ShutDown()
	ShutDownWithDrain()
	ShuttingDown() bool
}

func (*nowhere) Add(reconcile.Request) {}

// logs is a SidecarSet of one container for pods of the app web.
func logs(change func(*kruise.SidecarSet)) *kruise.SidecarSet {
	set := &kruise.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "logs", Generation: 1}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Containers = []kruise.SidecarContainer{{Container: corev1.Container{Name: "shipper", Image: "logs:1"}, PodInjectPolicy: kruise.BeforeAppContainerType}}
	if change != nil {
		change(set)
	}
	return set
}

// webs are pods that SidecarSets have given their containers.
func webs(t *testing.T, n int, sets ...*kruise.SidecarSet) (out []client.Object) {
	t.Helper()
	var given []injection.Set
	for _, set := range sets {
		given = append(given, injection.Set{Name: set.Name, Spec: &set.Spec})
	}
	for i := range n {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint("u", i)), Labels: map[string]string{"app": "web", "n": fmt.Sprint(i)}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
		}
		if err := injection.ApplySets(p, given, injection.Options{Now: time.Unix(1_700_000_000, 0)}); err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}
