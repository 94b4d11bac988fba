// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// replica is a manager, with a cache of its own, and what its webhook answers with.
type replica struct {
	manager.Manager
	targets *spread.Targets
	book    *spread.Recorder
	alive   context.Context
	kill    context.CancelFunc
	writes  *atomic.Int32
}

// installation is an API server with replicas of the manager, of which the first leads.
type installation struct {
	*testing.T
	api      client.Client
	replicas []*replica
	ahead    atomic.Int64 // how much later than it is the controller thinks it is, in ns
}

func install(t *testing.T, replicas int) *installation {
	t.Helper()
	env, api := apiserver.Serve(t)
	in := &installation{T: t, api: api}
	e := newEngine(t)
	clock := func() time.Time { return time.Now().Add(time.Duration(in.ahead.Load())) }
	for n := range replicas {
		mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
			Scheme: apiserver.Scheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := rollout.AddIndexes(t.Context(), mgr.GetFieldIndexer()); err != nil {
			t.Fatal(err)
		}
		r := &replica{Manager: mgr, writes: &atomic.Int32{}}
		r.alive, r.kill = context.WithCancel(t.Context())
		watched, err := client.NewWithWatch(env.Config, client.Options{Scheme: mgr.GetScheme()})
		if err != nil {
			t.Fatal(err)
		}
		counted := interceptor.NewClient(watched, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				r.writes.Add(1)
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		})
		r.targets = spread.NewTargets(mgr.GetClient(), mgr.GetAPIReader(), scale.NewFinder(mgr.GetClient(), nil), "kruise-system", clock)
		versions := spread.ParseVersions("deployment,replicaset")
		r.book = spread.NewRecorder(counted, mgr.GetAPIReader(), e, r.targets, versions, spread.WithClock(clock))
		if n == 0 {
			deps := reconcile.Deps{Client: mgr.GetClient(), Events: mgr.GetEventRecorderFor("test"), Engine: e, Now: clock, StatusInterval: 500 * time.Millisecond}
			if err := New(deps, r.targets, r.book).SetupWithManager(t.Context(), mgr); err != nil {
				t.Fatal(err)
			}
		}
		// The cache of the webhook has what it needs before the first request.
		for _, o := range []client.Object{&kruise.WorkloadSpread{}, &kruise.CloneSet{}} {
			if _, err := mgr.GetCache().GetInformer(t.Context(), o, cache.BlockUntilSynced(false)); err != nil {
				t.Fatal(err)
			}
		}
		apiserver.Run(t, mgr)
		mgr.GetCache().WaitForCacheSync(t.Context())
		in.replicas = append(in.replicas, r)
	}
	return in
}

func (in *installation) create(objects ...client.Object) {
	in.Helper()
	for _, o := range objects {
		if err := in.api.Create(in.Context(), o); err != nil {
			in.Fatal(err)
		}
	}
}

// admit has a replica let a pod in and the API server store it. An answer that a replica did
// not live to give is an error, whatever it had written before.
func (in *installation) admit(r *replica, pod *corev1.Pod) error {
	w, err := r.targets.FindSpread(r.alive, pod.Namespace, pod)
	if err != nil {
		return err
	}
	if w == nil {
		return fmt.Errorf("the cache of the replica shows no spread")
	}
	at, err := r.book.Create(r.alive, w, pod, false)
	if r.alive.Err() != nil {
		return r.alive.Err()
	}
	if err != nil {
		return err
	}
	if at != nil {
		if err := spread.InjectSubset(w, at, pod); err != nil {
			return err
		}
	}
	return in.api.Create(in.Context(), pod)
}

// subsets counts pods by their subsets.
func (in *installation) subsets() map[string]int {
	in.Helper()
	list := &corev1.PodList{}
	if err := in.api.List(in.Context(), list, client.InNamespace("shop")); err != nil {
		in.Fatal(err)
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

// status waits until the status says what it should, such as "a=20/0 b=20/0 c=10/-1".
func (in *installation) status(want string) {
	in.Helper()
	apiserver.Eventually(in, "the status "+want, func() string {
		w, got := &kruise.WorkloadSpread{}, ""
		if err := in.api.Get(in.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, w); err != nil {
			return err.Error()
		}
		for _, s := range w.Status.SubsetStatuses {
			got += fmt.Sprintf(" %s=%d/%d", s.Name, s.Replicas, s.MissingReplicas)
			if n := len(s.CreatingPods) + len(s.DeletingPods); n > 0 {
				got += fmt.Sprintf("(%d recorded)", n)
			}
		}
		if got == " "+want {
			return ""
		}
		return got
	})
}

// Fifty pods at once, before two replicas of which one is killed: no subset gets more than it
// may have, the writes are fewer than the pods, and what the dead replica recorded for pods
// that never came is forgotten.
func TestManyPodsAtOnceOnAnAPIServer(t *testing.T) {
	in := install(t, 2)
	set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	set.Spec.Replicas = ptr.To[int32](50)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "nginx"}}
	w := &kruise.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	w.Spec.TargetReference = kruise.TargetReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}
	w.Spec.Subsets = []kruise.WorkloadSpreadSubset{
		{Name: "a", MaxReplicas: ptr.To(intstr.FromInt(20)), RequiredNodeSelector: zone("a")}, {Name: "b", MaxReplicas: ptr.To(intstr.FromInt(20)), RequiredNodeSelector: zone("b")}, {Name: "c"},
	}
	in.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, set, w)
	in.status("a=0/20 b=0/20 c=0/-1")
	pod := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "web-", Namespace: "shop", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web", UID: set.UID, Controller: ptr.To(true)}},
		}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	}
	for _, r := range in.replicas {
		apiserver.Eventually(t, "the cache of a replica", func() string {
			if w, err := r.targets.FindSpread(t.Context(), "shop", pod()); w == nil || err != nil {
				return fmt.Sprintf("%v, %v", w, err)
			}
			return ""
		})
		r.writes.Store(0)
	}
	strange := pod()
	strange.OwnerReferences[0].APIVersion, strange.OwnerReferences[0].Kind, strange.OwnerReferences[0].Name = "apps/v1", "ReplicaSet", "a/b"
	if w, err := in.replicas[0].targets.FindSpread(t.Context(), "shop", strange); w != nil || err != nil {
		t.Errorf("of a pod whose owner has a name that no object has: %v, %v", w, err)
	}

	const pods = 50
	var all sync.WaitGroup
	var lost, admitted atomic.Int32
	for n := range pods {
		all.Go(func() {
			for try := n; ; try++ {
				r := in.replicas[try%2]
				err := in.admit(r, pod())
				switch {
				case err == nil:
					if admitted.Add(1) == 5 {
						in.replicas[1].kill()
					}
					return
				case r.alive.Err() != nil:
					lost.Add(1) // the workload's controller asks again
				default:
					t.Errorf("a pod was refused: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	got := in.subsets()
	if got["a"] > 20 || got["b"] > 20 || got["a"]+got["b"]+got["c"] != pods {
		t.Errorf("the pods went to %v", got)
	}
	writes := in.replicas[0].writes.Load() + in.replicas[1].writes.Load()
	if writes >= pods {
		t.Errorf("%d writes for %d pods", writes, pods)
	}
	t.Logf("%v by %d writes, with %d answers lost", got, writes, lost.Load())

	in.ahead.Store(int64(spread.CreatingFor + time.Second)) // the records of lost answers are old now
	touch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"scheduleStrategy": {"type": "Fixed"}}}`))
	if err := in.api.Patch(t.Context(), w, touch); err != nil {
		t.Fatal(err)
	}
	in.status(fmt.Sprintf("a=%d/%d b=%d/%d c=%d/-1", got["a"], 20-got["a"], got["b"], 20-got["b"], got["c"]))
	for range 40 - got["a"] - got["b"] {
		if err := in.admit(in.replicas[0], pod()); err != nil {
			t.Fatal(err)
		}
	}
	in.status(fmt.Sprintf("a=20/0 b=20/0 c=%d/-1", got["c"]))
	list := &corev1.PodList{}
	if err := in.api.List(t.Context(), list, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		want := map[string]string{"a": "300", "b": "200", "c": "100"}[spread.MarkOf(&list.Items[i]).Subset]
		if cost := list.Items[i].Annotations[kruise.PodDeletionCostKey]; cost != want {
			t.Errorf("the deletion cost of a pod of %s is %q, want %s", spread.MarkOf(&list.Items[i]).Subset, cost, want)
		}
	}

	// A dry run counts nothing.
	before := in.replicas[0].writes.Load()
	live := &kruise.WorkloadSpread{}
	if err := in.api.Get(t.Context(), client.ObjectKeyFromObject(w), live); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if at, err := in.replicas[0].book.Create(t.Context(), live, pod(), true); err != nil || at == nil || at.Subset.Name != "c" {
			t.Errorf("a dry run: %v, %v", at, err)
		}
	}
	if n := in.replicas[0].writes.Load() - before; n > 0 {
		t.Errorf("%d writes for dry runs", n)
	}
}
