// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

func asks(operation, user, namespace, uid string) *Asked {
	return &Asked{
		Request: points.Request{Operation: operation, User: points.User{Name: user}},
		Object:  points.Object{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: namespace, UID: uid},
	}
}

// saw has r see a pod go, in the two steps in which most do.
func saw(r *Recent, namespace, uid string) {
	was := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, UID: types.UID(uid)}}
	is := was.DeepCopy()
	is.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	r.Watch().OnUpdate(was, was)
	r.Watch().OnUpdate(was, is)
	r.Watch().OnUpdate(is, is)
	r.Watch().OnDelete(is)
}

func TestPodsAreSeenGoing(t *testing.T) {
	pod := func(uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", UID: types.UID(uid)}}
	}
	going := pod("b")
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for _, tc := range []struct {
		name string
		do   func(cache.ResourceEventHandler)
		want int
	}{
		{"one that is new does not go", func(h cache.ResourceEventHandler) { h.OnAdd(pod("a"), false) }, 0},
		{"nor does one that changes", func(h cache.ResourceEventHandler) { h.OnUpdate(pod("a"), pod("a")) }, 0},
		{"one goes when its grace period begins", func(h cache.ResourceEventHandler) { h.OnUpdate(pod("b"), going) }, 1},
		{"and not again when it is over", func(h cache.ResourceEventHandler) { h.OnDelete(going) }, 0},
		{"one goes at once", func(h cache.ResourceEventHandler) { h.OnDelete(pod("a")) }, 1},
		{"one went while the watch was down", func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Obj: pod("a")}) }, 1},
		{"what is no pod is nothing", func(h cache.ResourceEventHandler) { h.OnUpdate("a", "b"); h.OnDelete("c") }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := NewRecent(time.Now)
			tc.do(r.Watch())
			if got := r.CountDeletes(asks("DELETE", "ann", "shop", "new")).Deletes; got != tc.want {
				t.Errorf("%d went, want %d", got, tc.want)
			}
		})
	}
}

func TestRecent(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewRecent(func() time.Time { return now })
	check := func(what string, a *Asked, deletes, byUser int) {
		t.Helper()
		if got := r.CountDeletes(a); got != (points.Recent{Seconds: 60, Deletes: deletes, UserDeletes: byUser}) {
			t.Errorf("%s: %+v, want %d and %d", what, got, deletes, byUser)
		}
	}
	ask := asks("DELETE", "ann", "shop", "new")
	check("at first", ask, 0, 0)
	r.RecordRemoval(asks("DELETE", "ann", "shop", "a"))
	saw(r, "shop", "a")
	r.RecordRemoval(asks("EVICT", "bob", "shop", "b"))
	saw(r, "shop", "c")
	r.RecordRemoval(asks("UPDATE", "ann", "shop", "d"))
	r.RecordRemoval(asks("DELETE", "ann", "bank", "e"))
	saw(r, "shop", "")
	dry := asks("DELETE", "ann", "shop", "f")
	dry.Request.DryRun = true
	r.RecordRemoval(dry)
	service := asks("DELETE", "ann", "shop", "g")
	service.Object.Resource = "services"
	r.RecordRemoval(service)
	check("each pod once, changes and dry runs not, other kinds and namespaces not", ask, 3, 1)
	check("not the one that is asked about once more", asks("DELETE", "ann", "shop", "a"), 2, 0)
	now = now.Add(Window)
	saw(r, "shop", "h")
	check("for a minute", ask, 4, 1)
	now = now.Add(time.Nanosecond)
	check("and no longer", ask, 1, 0)
	now = now.Add(2 * Window)
	saw(r, "elsewhere", "i")
	if len(r.went) != 1 {
		t.Errorf("%d namespaces are remembered", len(r.went))
	}
}

func TestRecentIsBounded(t *testing.T) {
	r := NewRecent(time.Now)
	for i := range most + 10 {
		r.RecordRemoval(asks("DELETE", "ann", "shop", fmt.Sprint(i)))
	}
	if got := r.CountDeletes(asks("DELETE", "ann", "shop", "new")); got.Deletes != most {
		t.Errorf("%+v", got)
	}
	for _, l := range r.went {
		if len(l.known) != most || l.known["0"] || !l.known[fmt.Sprint(most)] {
			t.Errorf("%d are known", len(l.known))
		}
	}
}

func TestRecentIsForMany(t *testing.T) {
	r := NewRecent(time.Now)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				a := asks("DELETE", "ann", fmt.Sprint(j%3), fmt.Sprint(i, j))
				r.CountDeletes(a)
				r.RecordRemoval(a)
				saw(r, a.Object.Namespace, a.Object.UID)
			}
		})
	}
	all.Wait()
	total := 0
	for i := range 3 {
		total += r.CountDeletes(asks("DELETE", "ann", fmt.Sprint(i), "")).Deletes
	}
	if total != 400 {
		t.Errorf("%d went", total)
	}
}
