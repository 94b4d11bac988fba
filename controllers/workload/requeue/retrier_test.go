// SPDX-License-Identifier: Apache-2.0

package requeue_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// clockedQueue adds at once what is to be added later, and turns the clock to then.
type clockedQueue struct {
	workqueue.TypedDelayingInterface[reconcile.Request]
	mu  sync.Mutex
	now time.Time
}

func (q *clockedQueue) AddAfter(req reconcile.Request, after time.Duration) {
	q.mu.Lock()
	q.now = q.now.Add(after)
	q.mu.Unlock()
	q.Add(req)
}

func (q *clockedQueue) read() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.now
}

type answer struct {
	after time.Duration
	err   error
	panic bool
}

// callTimes runs a controller of controller-runtime whose Reconciler gives an answer at each time since its
// begin, and returns the times of the first calls.
func callTimes(t *testing.T, name string, calls int, answerAt func(call int, at time.Duration) answer) (times []time.Duration) {
	t.Helper()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	q := &clockedQueue{now: begin, TypedDelayingInterface: workqueue.NewTypedDelayingQueue[reconcile.Request]()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	r := requeue.NewRetrier(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		if len(times) == calls {
			cancel()
			return reconcile.Result{}, nil
		}
		at := q.read().Sub(begin)
		times = append(times, at)
		a := answerAt(len(times), at)
		if a.panic {
			panic("broken")
		}
		if a.err == nil && a.after == 0 {
			q.AddAfter(req, 0) // another event
		}
		return reconcile.Result{RequeueAfter: a.after}, a.err
	}), nil, q.read)
	c, err := controller.NewUnmanaged(name, controller.Options{
		Reconciler: r, RateLimiter: r, SkipNameValidation: ptr.To(true),
		NewQueue: func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{DelayingQueue: q})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		q.Add(req)
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return times
}

func errorsCounted(t *testing.T, name string) (count float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_errors_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == name {
				count = m.GetCounter().GetValue()
			}
		}
	}
	return count
}

func TestTimersSurviveErrors(t *testing.T) {
	const grace = 30 * time.Second
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		answer func(call int, at time.Duration) answer
		want   time.Duration // of a call
	}{
		"a timer beside each error": {func(_ int, at time.Duration) answer { return answer{after: max(grace-at, 0), err: broken} }, grace},
		"a timer beside the first error": {func(call int, _ time.Duration) answer {
			if call == 1 {
				return answer{after: grace, err: broken}
			}
			return answer{err: broken}
		}, grace},
		"a timer of the round before": {func(call int, _ time.Duration) answer {
			if call == 1 {
				return answer{after: grace}
			}
			return answer{err: broken}
		}, grace},
		"a timer of an event's round before": {func(call int, at time.Duration) answer {
			switch call {
			case 1:
				return answer{after: 10 * time.Second}
			case 2:
				return answer{after: grace - at, err: broken}
			}
			return answer{err: broken}
		}, grace},
		"a later timer that does not replace an earlier one": {func(call int, at time.Duration) answer {
			if call == 1 {
				return answer{after: grace, err: broken}
			}
			return answer{after: time.Hour, err: broken}
		}, grace},
		"a panic after a round with a timer": {func(call int, _ time.Duration) answer {
			if call == 1 {
				return answer{after: grace, err: broken}
			}
			return answer{panic: true}
		}, grace},
	} {
		t.Run(name, func(t *testing.T) {
			component := "of " + name
			times := callTimes(t, component, 20, tc.answer)
			if !slices.Contains(times, tc.want) {
				t.Errorf("called at %v, want also at %s", times, tc.want)
			}
			for i := 1; i < len(times); i++ {
				if gap := times[i] - times[i-1]; gap > requeue.LongestBackOff {
					t.Errorf("called at %v: waits for %s, want %s at the most", times, gap, requeue.LongestBackOff)
				}
			}
			if errorsCounted(t, component) < 15 {
				t.Errorf("counted %v errors, want those of all rounds", errorsCounted(t, component))
			}
		})
	}
}

func TestTimersDoNotEndTheBackOff(t *testing.T) {
	broken := errors.New("broken")
	times := callTimes(t, "due in each round", 20, func(int, time.Duration) answer { return answer{after: time.Millisecond, err: broken} })
	if gap := times[19] - times[18]; gap != time.Second {
		t.Errorf("called at %v: after %s in the end, want 1s", times, gap)
	}
	times = callTimes(t, "forgotten", 20, func(call int, _ time.Duration) answer {
		if call == 10 || call == 11 {
			return answer{}
		}
		return answer{after: 10 * time.Second * time.Duration(max(0, 2-call)), err: broken}
	})
	if gap := times[12] - times[11]; gap != 5*time.Millisecond {
		t.Errorf("called at %v: after %s behind a round that succeeded, want 5ms", times, gap)
	}
}

// controllers are the folders of all controllers, with the number of those in each.
var controllers = map[string]int{
	"controllers/advancedcronjob": 1, "controllers/broadcastjob": 1, "controllers/containerrecreaterequest": 1, "controllers/ephemeraljob": 1, "controllers/gatedkinds": 1,
	"controllers/imagelistpulljob": 1, "controllers/imagepulljob": 1, "controllers/launchpriority": 1, "controllers/livenessprobe": 1,
	"controllers/nodeimage": 1, "controllers/nodepodprobe": 1, "controllers/persistentpodstate": 3,
	"controllers/podprobemarker": 1, "controllers/podreadiness": 1, "controllers/podunavailablebudget": 1, "controllers/policybundle": 1,
	"controllers/policyhost": 1, "controllers/resourcedistribution": 1, "controllers/sidecarterminator": 1, "controllers/uniteddeployment": 1,
	"controllers/webhookconfig": 1, "controllers/workload/rollout": 1, "controllers/workloadspread": 1,
	"nodeagent/containermeta": 1, "nodeagent/images": 1, "nodeagent/probes": 1, "nodeagent/restarts": 1,
}

func TestAllControllersKeepTheirTimers(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	made, kept := map[string]int{}, map[string]int{}
	for _, folder := range []string{"controllers", "nodeagent"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil || slices.Contains([]string{"controllers/workload/requeue", "controllers/reconcile"}, filepath.ToSlash(name)) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch calledFunction(call) {
				case "ctrl.NewControllerManagedBy", "builder.ControllerManagedBy", "controller.New", "controller.NewUnmanaged", "controller.NewTyped", "controller.NewTypedUnmanaged":
					made[filepath.ToSlash(name)]++
				case "requeue.CompleteController", "requeue.KeepTimers":
					kept[filepath.ToSlash(name)]++
				default: // by reconcile.Deps
					switch f, _ := call.Fun.(*ast.SelectorExpr); {
					case f == nil:
					case f.Sel.Name == "NewController":
						made[filepath.ToSlash(name)]++
					case f.Sel.Name == "CompleteController":
						kept[filepath.ToSlash(name)]++
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, n := range made {
		if controllers[name] != n {
			t.Errorf("%s makes %d controllers, want %d: add them to the table", name, n, controllers[name])
		}
	}
	for name, n := range controllers {
		if kept[name] != n {
			t.Errorf("%s has %d controllers, of which %d keep their timers: call requeue.CompleteController or requeue.KeepTimers", name, n, kept[name])
		}
	}
}

// calledFunction returns the name of a function of a package that is called.
func calledFunction(call *ast.CallExpr) string {
	if f, ok := call.Fun.(*ast.SelectorExpr); ok {
		if p, ok := f.X.(*ast.Ident); ok {
			return p.Name + "." + f.Sel.Name
		}
	}
	return ""
}
