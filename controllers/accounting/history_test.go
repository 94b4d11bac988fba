// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/apiserver"
)

var questions = flag.Int("questions", 4000, "how many questions the history has")

// late is a client whose reads are from a copy that is up to a tenth of a second
// old, as those of a cache may be.
type late struct {
	client.Client
	copies atomic.Pointer[map[types.NamespacedName]policy.PodUnavailableBudget]
}

func (l *late) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	b, ok := (*l.copies.Load())[key]
	if !ok {
		return apierrors.NewNotFound(policy.GroupVersion.WithResource("podunavailablebudgets").GroupResource(), key.Name)
	}
	b.DeepCopyInto(o.(*policy.PodUnavailableBudget))
	return nil
}

func (l *late) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		list := &policy.PodUnavailableBudgetList{}
		if err := l.List(ctx, list); err != nil {
			return client.IgnoreNotFound(err)
		}
		copies := map[types.NamespacedName]policy.PodUnavailableBudget{}
		for _, b := range list.Items {
			copies[client.ObjectKeyFromObject(&b)] = b
		}
		time.Sleep(rand.N(100 * time.Millisecond))
		l.copies.Store(&copies)
	}
	return nil
}

// event is a question that was answered, or pods that came back.
type event struct {
	budget, pod string
	back        []string
	allowed     bool
	contended   bool
	version     int64
	from, to    time.Time
}

// replica is a manager: a ledger, a client and a cache of its own.
func replica(t *testing.T, config *rest.Config, scheme *runtime.Scheme) *Accountant {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 2000, 4000
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	cached := &late{Client: direct}
	cached.copies.Store(&map[types.NamespacedName]policy.PodUnavailableBudget{})
	go func() { _ = cached.follow(t.Context()) }()        // the questions fail if it does
	return New(cached, direct, plain, WithResizes(false)) // each operation takes a pod
}

// Many ask two managers at once, about budgets of several sizes, while pods that
// were let go come back. The answers to all callers together are linearizable: they are
// those of one ledger that takes one question after the other, in an order that
// agrees with the times at which callers asked and were answered.
func TestHistory(t *testing.T) {
	env := apiserver.Start(t)
	apiserver.Install(t, env, apiserver.CRDs(t, ""))
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policy.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int32{"none": 0, "one": 1, "two": 2, "five": 5, "many": 40}
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	const pods = 60
	for name, size := range sizes {
		b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"budget": name}}
		b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(size))
		if err := api.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		b.Status = policy.PodUnavailableBudgetStatus{UnavailableAllowed: size, CurrentAvailable: pods, DesiredAvailable: pods - size, TotalReplicas: pods}
		if err := api.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	ledgers := []*Accountant{replica(t, env.Config, scheme), replica(t, env.Config, scheme)}

	var mu sync.Mutex
	var history []event
	note := func(e event) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, e)
	}
	names := []string{"none", "one", "two", "five", "many"}
	ctx, done := context.WithCancel(t.Context())
	var clients, controller sync.WaitGroup
	controller.Go(func() { restore(ctx, t, api, names, note) })
	began := time.Now()
	for i := range 16 {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		clients.Go(func() {
			for range *questions / 16 {
				name := names[random.IntN(len(names))]
				op := []string{protection.Delete, protection.Evict, protection.Update, protection.Resize}[random.IntN(4)]
				p := pod(fmt.Sprintf("%s-%d", name, random.IntN(pods)), func(p *corev1.Pod) { p.Annotations["pub.kruise.io/related-pub"] = name })
				e := event{budget: name, pod: p.Name, from: time.Now()}
				got, err := ledgers[random.IntN(2)].DecideRequest(t.Context(), asks(op, p))
				if err != nil {
					t.Error(err)
					return
				}
				e.to, e.allowed, e.version = time.Now(), got.Output.Allow, versionOf(got.Version)
				e.contended = !e.allowed && got.Output.Reasons[0].Reason == "BudgetContended"
				note(e)
			}
		})
	}
	clients.Wait()
	took := time.Since(began)
	done()
	controller.Wait()
	allowed, contended := judgeHistory(t, history, sizes)
	t.Logf("%d questions in %s (%.0f a second): %d let go, %d given up", *questions, took.Round(time.Millisecond), float64(*questions)/took.Seconds(), allowed, contended)
	if allowed == 0 {
		t.Error("nothing was ever allowed")
	}
	for _, l := range ledgers {
		l.mu.Lock()
		if len(l.own) > len(names) {
			t.Errorf("%d budgets are remembered", len(l.own))
		}
		l.mu.Unlock()
	}
}

func versionOf(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // 0 is no version, which the judge finds
	return n
}

// restore is the controller: some pods that were let go are there again.
func restore(ctx context.Context, t *testing.T, api client.Client, names []string, note func(event)) {
	for ctx.Err() == nil {
		for _, name := range names {
			b := &policy.PodUnavailableBudget{}
			e := event{budget: name, from: time.Now()}
			if err := api.Get(context.WithoutCancel(ctx), types.NamespacedName{Namespace: "shop", Name: name}, b); err != nil {
				t.Error(err)
				return
			}
			for _, l := range recordLists(&b.Status) {
				for p := range *l.records {
					if rand.IntN(2) == 0 {
						delete(*l.records, p)
						e.back = append(e.back, p)
					}
				}
			}
			if len(e.back) == 0 {
				continue
			}
			b.Status.UnavailableAllowed += int32(len(e.back))
			b.Status.CurrentAvailable += int32(len(e.back))
			err := api.Status().Update(context.WithoutCancel(ctx), b)
			if apierrors.IsConflict(err) {
				continue
			}
			if err != nil {
				t.Error(err)
				return
			}
			e.to, e.version = time.Now(), versionOf(b.ResourceVersion)
			note(e)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// judgeHistory replays a history in the order of the versions: those that were
// written make the order, and what only read stands behind what it read. It counts
// what was let go, and what was given up.
func judgeHistory(t *testing.T, history []event, sizes map[string]int32) (allowed, contended int) {
	t.Helper()
	byBudget := map[string][]event{}
	for _, e := range history {
		if e.contended { // it neither saw nor did anything
			contended++
			continue
		}
		byBudget[e.budget] = append(byBudget[e.budget], e)
	}
	for name, events := range byBudget {
		slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.version, b.version) })
		var latest time.Time // when the latest question of earlier versions began
		gone := map[string]bool{}
		for len(events) > 0 {
			n := slices.IndexFunc(events, func(e event) bool { return e.version != events[0].version })
			if n < 0 {
				n = len(events)
			}
			allowed += judgeVersion(t, name, events[:n], gone, int(sizes[name]), &latest)
			events = events[n:]
		}
	}
	return allowed, contended
}

// judgeVersion replays what one version was written by, and then what read it. Its
// order in time does not matter, but none may be over before something began that
// an earlier version has seen. That a pod is let go once more, because it is
// recorded, is no news, and may be known from an older version.
func judgeVersion(t *testing.T, name string, events []event, gone map[string]bool, size int, latest *time.Time) (allowed int) {
	t.Helper()
	began := *latest
	late := func(e event) {
		if e.to.Before(*latest) {
			t.Errorf("%s: %+v was answered before a question began that it comes after", name, e)
		}
		if e.from.After(began) {
			began = e.from
		}
	}
	for _, e := range events {
		for _, p := range e.back {
			if !gone[p] {
				t.Errorf("%s: %s came back and was not gone", name, p)
			}
			delete(gone, p)
		}
		if e.allowed && !gone[e.pod] {
			gone[e.pod] = true
			late(e)
		}
		if e.allowed {
			allowed++
		}
	}
	if len(gone) > size {
		t.Errorf("%s: %d pods are gone, %d may be", name, len(gone), size)
	}
	for _, e := range events {
		switch {
		case e.allowed:
			continue
		case e.pod != "" && gone[e.pod]:
			t.Errorf("%s: %s was refused though it was let go", name, e.pod)
		case e.pod != "" && len(gone) < size:
			t.Errorf("%s: %s was refused though only %d of %d are gone", name, e.pod, len(gone), size)
		}
		late(e)
	}
	*latest = began
	return allowed
}
