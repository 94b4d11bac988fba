// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// recordingQueue notes what is added to it, and when.
type recordingQueue struct {
	reconcile.Queue
	from time.Time
	down atomic.Bool

	mu    sync.Mutex
	added map[string]time.Duration // since the queue was made
}

func newRecordingQueue() *recordingQueue {
	return &recordingQueue{added: map[string]time.Duration{}, from: time.Now()}
}

func (q *recordingQueue) Add(r reconcile.Request) { q.AddAfter(r, 0) }

func (q *recordingQueue) AddAfter(r reconcile.Request, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.added[r.String()] = time.Since(q.from) + after
}

func (q *recordingQueue) ShuttingDown() bool { return q.down.Load() }

// addedAt is when an object was added, since the queue was made.
func (q *recordingQueue) addedAt(name string) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.added[name]
}

func (q *recordingQueue) names() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(q.added)), " ")
}

// listing is a list of requests that can fail.
type listing struct {
	mu     sync.Mutex
	err    error
	panics bool
	calls  int
}

// recover has lists succeed from now on.
func (l *listing) recover() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err, l.panics = nil, false
}

func (l *listing) countCalls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

func (l *listing) list(context.Context) ([]reconcile.Request, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls++; l.panics {
		panic("list")
	}
	if l.err != nil {
		return nil, l.err
	}
	return []reconcile.Request{named("shop", "web"), named("bank", "web"), named("", "logs")}, nil
}

func named(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Whatever handler of MissedEvents cannot read, all objects are enqueued once they can be listed, and the event is not lost.
func TestAnEventWhoseObjectsCannotBeReadIsMadeUpFor(t *testing.T) {
	broken := errors.New("broken")
	all := "/logs bank/web shop/web"
	for _, tc := range []struct {
		name string
		// outage is how long reads fail.
		outage time.Duration
		// within is how long after the outage all objects are enqueued at the latest.
		within time.Duration
		cause  *listing
	}{
		{"a read that fails once", 0, 100 * time.Millisecond, &listing{err: broken}},
		{"reads that fail for a second", time.Second, time.Second, &listing{err: broken}},
		{"reads that fail for an hour", time.Hour, 10 * time.Second, &listing{err: broken}},
		{"a panic", time.Second, time.Second, &listing{panics: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, q := tc.cause, newRecordingQueue()
				m := reconcile.NewMissedEvents("x", l.list)
				m.EnqueueAll().Generic(t.Context(), event.GenericEvent{Object: &corev1.Pod{}}, q)
				time.Sleep(tc.outage)
				synctest.Wait()
				if q.names() != "" {
					t.Fatalf("while nothing can be listed, %s are enqueued", q.names())
				}
				l.recover()
				time.Sleep(tc.within)
				synctest.Wait()
				if q.names() != all {
					t.Errorf("enqueued are %q, want %q", q.names(), all)
				}
				calls := l.countCalls()
				if most := int(tc.outage/(10*time.Second)) + 10; calls > most {
					t.Errorf("it was listed %d times in %s, want %d at the most", calls, tc.outage, most)
				}
				time.Sleep(time.Hour)
				if more := l.countCalls() - calls; more > 0 {
					t.Errorf("it is listed %d times more though no event was missed", more)
				}
			})
		})
	}
}

// panickingQueue is a queue that panics for a while.
type panickingQueue struct {
	*recordingQueue
	panics atomic.Bool
}

func (q *panickingQueue) AddAfter(r reconcile.Request, after time.Duration) {
	if q.panics.Load() {
		panic("queue")
	}
	q.recordingQueue.AddAfter(r, after)
}

func TestAnEventIsMadeUpForAfterAPanicOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := &listing{}, &panickingQueue{recordingQueue: newRecordingQueue()}
		q.panics.Store(true)
		m := reconcile.NewMissedEvents("x", l.list)
		m.EnqueueAllLater(t.Context(), q, errors.New("broken"))
		time.Sleep(time.Second)
		synctest.Wait()
		q.panics.Store(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if want := "/logs bank/web shop/web"; q.names() != want {
			t.Errorf("enqueued are %q, want %q", q.names(), want)
		}
	})
}

// An event that is missed while the objects are listed, or right after that, is made up for by another list, since the first one may
// be older than the event. Events that are missed all the while enqueue all objects once a minute.
func TestEventsThatAreMissedLaterAreMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newRecordingQueue()
		var m *reconcile.MissedEvents
		var lists atomic.Int64
		miss := func() { m.EnqueueAllLater(t.Context(), q, errors.New("broken")) }
		m = reconcile.NewMissedEvents("x", func(context.Context) ([]reconcile.Request, error) {
			n := lists.Add(1)
			if n == 1 {
				miss()
			}
			return []reconcile.Request{named("shop", fmt.Sprint("web-", n))}, nil
		})
		miss()
		time.Sleep(time.Second)
		if q.names() != "shop/web-1" {
			t.Errorf("enqueued are %q after the first list", q.names())
		}
		time.Sleep(time.Minute)
		if q.names() != "shop/web-1 shop/web-2" {
			t.Errorf("enqueued are %q after a list during which an event was missed", q.names())
		}
		for range 600 { // ten minutes
			miss()
			time.Sleep(time.Second)
		}
		if n := lists.Load(); n < 11 || n > 13 {
			t.Errorf("all objects were listed %d times in ten minutes", n-2)
		}
		time.Sleep(2 * time.Minute)
		before := lists.Load()
		miss()
		time.Sleep(time.Second)
		if lists.Load() != before+1 {
			t.Error("an event that is missed later is not made up for at once")
		}
		time.Sleep(2 * time.Minute)
	})
}

// Once no worker takes objects from the queue, nothing is listed any more.
func TestNothingIsListedForAQueueThatIsShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := &listing{err: errors.New("broken")}, newRecordingQueue()
		m := reconcile.NewMissedEvents("x", l.list)
		m.EnqueueAllLater(t.Context(), q, errors.New("broken"))
		time.Sleep(time.Minute)
		q.down.Store(true)
		synctest.Wait()
		calls := l.countCalls()
		time.Sleep(time.Hour)
		if more := l.countCalls() - calls; calls == 0 || more > 0 {
			t.Errorf("it is listed %d times before and %d times after that", calls, more)
		}
		q.down.Store(false) // of a manager that is started again in one process
		l.recover()
		m.EnqueueAllLater(t.Context(), q, errors.New("broken"))
		time.Sleep(time.Minute)
		if q.names() == "" {
			t.Error("it makes up for no event any more")
		}
		time.Sleep(2 * time.Minute)
	})
}

func TestEventsThatAreHandledAfterADelayAreMadeUpForAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := &listing{}, newRecordingQueue()
		m := reconcile.NewMissedEvents("x", l.list).WithDelay(5 * time.Second)
		m.EnqueueAllLater(t.Context(), q, errors.New("broken"))
		time.Sleep(time.Second)
		if at := q.addedAt("shop/web"); at != 5100*time.Millisecond {
			t.Errorf("it is enqueued after %s", at)
		}
		time.Sleep(2 * time.Minute)
	})
}

// Where nothing fails, the handlers do what handler.EnqueueRequestsFromMapFunc does: each object once, what find returns for both states
// of an update, and with a lower priority for objects of the first list.
func TestFoundObjectsAreEnqueuedOnce(t *testing.T) {
	l, q := &listing{}, newRecordingQueue()
	m := reconcile.NewMissedEvents("x", l.list)
	found := m.EnqueueFound(func(_ context.Context, o client.Object) ([]reconcile.Request, error) {
		return []reconcile.Request{named("shop", o.GetName()), named("shop", "both")}, nil
	})
	found.Update(t.Context(), event.UpdateEvent{ObjectOld: pod("a"), ObjectNew: pod("b")}, q)
	if q.names() != "shop/a shop/b shop/both" {
		t.Errorf("an update enqueues %q", q.names())
	}
	q = newRecordingQueue()
	m.EnqueueInNamespace().Update(t.Context(), event.UpdateEvent{ObjectOld: pod("shop"), ObjectNew: pod("shop")}, q)
	if q.names() != "shop/web" {
		t.Errorf("an update of a namespace enqueues %q", q.names())
	}
	for name, send := range map[string]func(q reconcile.Queue){
		"a creation": func(q reconcile.Queue) { m.EnqueueAll().Create(t.Context(), event.CreateEvent{Object: pod("a")}, q) },
		"a deletion": func(q reconcile.Queue) { m.EnqueueAll().Delete(t.Context(), event.DeleteEvent{Object: pod("a")}, q) },
	} {
		q = newRecordingQueue()
		if send(q); q.names() != "/logs bank/web shop/web" {
			t.Errorf("%s enqueues %q", name, q.names())
		}
	}
	first := priorityqueue.New[reconcile.Request]("x")
	defer first.ShutDown()
	m.EnqueueAll().Create(t.Context(), event.CreateEvent{Object: pod("a"), IsInInitialList: true}, first)
	m.EnqueueInNamespace().Create(t.Context(), event.CreateEvent{Object: pod("bank")}, first)
	if r, priority, _ := first.GetWithPriority(); r != named("bank", "web") || priority != 0 {
		t.Errorf("the first one is %s with priority %d", r, priority)
	}
	if _, priority, _ := first.GetWithPriority(); priority >= 0 {
		t.Errorf("one of the first list has priority %d", priority)
	}
}
