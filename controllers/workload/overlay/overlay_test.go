// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	_ "github.com/regatta-sh/regatta/test/proptest"
)

const (
	owner    = types.UID("owner")
	deadline = 5 * time.Minute
)

func pod(uid string, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version)}}
}

// clock is a clock that tests turn.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func fresh() (*Overlay, *clock) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return New(c.Now), c
}

// listed applies the overlay to a cache as it is now.
func listed(o *Overlay, cached ...*corev1.Pod) []string {
	out, _ := o.ApplyWrites(owner, o.TakeMark(), slices.Clone(cached), deadline)
	return described(out)
}

func described(pods []*corev1.Pod) []string {
	out := []string{}
	for _, p := range pods {
		text := p.Name + "@" + p.ResourceVersion
		if p.DeletionTimestamp != nil {
			text += " deleted"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func TestOverlay(t *testing.T) {
	tests := map[string]struct {
		write  func(o *Overlay)
		cached []*corev1.Pod
		want   []string
	}{
		"a pod without a write is as the cache has it": {
			func(*Overlay) {}, []*corev1.Pod{pod("a", 1)}, []string{"a@1"},
		},
		"a created pod is there before the cache shows it": {
			func(o *Overlay) { o.RecordCreated(owner, pod("a", 5)) }, nil, []string{"a@5"},
		},
		"a created pod that was written again is still there before the cache shows it": {
			func(o *Overlay) { o.RecordCreated(owner, pod("a", 5)); o.RecordPatched(owner, pod("a", 6)) }, nil, []string{"a@6"},
		},
		"a created pod that was deleted is on its way out before the cache shows it": {
			func(o *Overlay) { o.RecordCreated(owner, pod("a", 5)); o.RecordDeleted(owner, pod("a", 5)) }, nil, []string{"a@5 deleted"},
		},
		"a created pod that the cache showed and does not have any more is gone": {
			func(o *Overlay) { o.RecordCreated(owner, pod("a", 5)); o.ObservePod(owner, "a") }, nil, []string{},
		},
		"a created pod whose whole life the cache showed before we were told of it is gone": {
			func(o *Overlay) {
				o.ObservePod(owner, "a")
				o.ObserveDeletion(owner, "a")
				o.RecordCreated(owner, pod("a", 5))
			}, nil, []string{},
		},
		"a patched pod is as it was written": {
			func(o *Overlay) { o.RecordPatched(owner, pod("a", 5)) }, []*corev1.Pod{pod("a", 4)}, []string{"a@5"},
		},
		"versions are numbers, not text": {
			func(o *Overlay) { o.RecordPatched(owner, pod("a", 10)) }, []*corev1.Pod{pod("a", 9)}, []string{"a@10"},
		},
		"a pod that was written after us is as it is in the cache": {
			func(o *Overlay) { o.RecordPatched(owner, pod("a", 5)) }, []*corev1.Pod{pod("a", 6)}, []string{"a@6"},
		},
		"a write that came in late does not replace a newer one": {
			func(o *Overlay) { o.RecordPatched(owner, pod("a", 6)); o.RecordPatched(owner, pod("a", 5)) }, []*corev1.Pod{pod("a", 4)}, []string{"a@6"},
		},
		"a deleted pod is on its way out": {
			func(o *Overlay) { o.RecordDeleted(owner, pod("a", 4)) }, []*corev1.Pod{pod("a", 4)}, []string{"a@4 deleted"},
		},
		"a deleted pod that another client wrote is still terminating": {
			func(o *Overlay) { o.RecordDeleted(owner, pod("a", 4)) }, []*corev1.Pod{pod("a", 6)}, []string{"a@4 deleted"},
		},
		"a write that came in late does not undo a delete": {
			func(o *Overlay) { o.RecordDeleted(owner, pod("a", 4)); o.RecordPatched(owner, pod("a", 5)) }, []*corev1.Pod{pod("a", 4)}, []string{"a@4 deleted"},
		},
		"a deleted pod that the cache does not have is gone": {
			func(o *Overlay) { o.RecordDeleted(owner, pod("a", 4)) }, nil, []string{},
		},
		"a pod that was patched and is not in the cache any more is gone": {
			func(o *Overlay) { o.RecordPatched(owner, pod("a", 4)) }, nil, []string{},
		},
		"another owner's writes are another's": {
			func(o *Overlay) { o.RecordCreated("other", pod("a", 4)) }, nil, []string{},
		},
		"an owner that is gone has written nothing": {
			func(o *Overlay) { o.RecordCreated(owner, pod("a", 4)); o.ForgetOwner(owner) }, nil, []string{},
		},
		"a write that was dropped is forgotten": {
			func(o *Overlay) { o.RecordCreated(owner, pod("a", 4)); o.DropWrite(owner, "a") }, nil, []string{},
		},
		"versions that are no numbers are as the cache has them": {
			func(o *Overlay) { p := pod("a", 0); p.ResourceVersion = "x"; o.RecordPatched(owner, p) }, []*corev1.Pod{pod("a", 4)}, []string{"a@4"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o, _ := fresh()
			tc.write(o)
			for range 2 { // and it stays so
				if got := listed(o, tc.cached...); !slices.Equal(got, tc.want) {
					t.Errorf("got %v, want %v", got, tc.want)
				}
			}
		})
	}
}

// The cache goes on while a list of it is made: a pod that it shows in between
// may be missing from the list, and is no less there for it.
func TestAPodThatTheCacheShowsWhileItIsListedIsNotGone(t *testing.T) {
	o, _ := fresh()
	o.RecordCreated(owner, pod("a", 5))
	mark := o.TakeMark()
	var list []*corev1.Pod // made before the cache had it
	o.ObservePod(owner, "a")
	got, _ := o.ApplyWrites(owner, mark, list, deadline)
	if !slices.Equal(described(got), []string{"a@5"}) {
		t.Errorf("got %v, want a@5", described(got))
	}
	if got := listed(o); len(got) != 0 {
		t.Errorf("the next list does not have it either, so it is gone; got %v", got)
	}
}

func TestADeletedPodThatEndsWhileItIsListedIsNotBack(t *testing.T) {
	o, _ := fresh()
	o.RecordDeleted(owner, pod("a", 5))
	mark := o.TakeMark()
	list := []*corev1.Pod{pod("a", 4)} // made before the cache knew
	o.ObserveDeletion(owner, "a")
	got, _ := o.ApplyWrites(owner, mark, list, deadline)
	if !slices.Equal(described(got), []string{"a@5 deleted"}) {
		t.Errorf("got %v, want it deleted", described(got))
	}
}

func TestWritesThatTheCacheDoesNotShowInTimeAreLate(t *testing.T) {
	o, c := fresh()
	o.RecordCreated(owner, pod("a", 5))
	o.RecordPatched(owner, pod("b", 6))
	c.now = c.now.Add(deadline + time.Second)
	o.RecordPatched(owner, pod("c", 7))
	_, late := o.ApplyWrites(owner, o.TakeMark(), []*corev1.Pod{pod("b", 1), pod("c", 1)}, deadline)
	if got := described(late); !slices.Equal(got, []string{"a@5", "b@6"}) {
		t.Errorf("late are %v, want a and b", got)
	}
	_, late = o.ApplyWrites(owner, o.TakeMark(), []*corev1.Pod{pod("a", 5), pod("b", 6), pod("c", 1)}, deadline)
	if len(late) != 0 {
		t.Errorf("what the cache shows by now is still late: %v", described(late))
	}
}

func TestEndsAreForgottenInTime(t *testing.T) {
	o, c := fresh()
	for i := range 1000 {
		o.ObserveDeletion(owner, types.UID(strconv.Itoa(i)))
		c.now = c.now.Add(time.Second)
	}
	if n := len(o.ended.young) + len(o.ended.old); n > 130 {
		t.Errorf("%d ends are remembered after 1000 s", n)
	}
	if !o.ended.hasPod("999") {
		t.Error("the last end is forgotten")
	}
}

// server is the truth, with a cache that lags behind by any number of events.
type server struct {
	version int
	pods    map[string]*corev1.Pod
	cache   map[string]*corev1.Pod
	pending []func() // events on their way to the cache
}

func (s *server) set(o *Overlay, p *corev1.Pod) {
	s.pods[p.Name] = p
	s.pending = append(s.pending, func() { s.cache[p.Name] = p; o.ObservePod(owner, p.UID) })
}

func (s *server) end(o *Overlay, name string) {
	p := s.pods[name]
	delete(s.pods, name)
	s.pending = append(s.pending, func() { delete(s.cache, name); o.ObserveDeletion(owner, p.UID) })
}

func (s *server) next(p *corev1.Pod) *corev1.Pod {
	s.version++
	p = p.DeepCopy()
	p.ResourceVersion = strconv.Itoa(s.version)
	return p
}

// However far the cache lags, and whichever other clients write, the overlay shows no
// pod older than we wrote it, shows none of ours as alive that we deleted, misses
// none that we created, and brings none back that has gone from the cache.
func TestTheOverlayIsNeverOlderThanOurWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, _ := fresh()
		s := &server{pods: map[string]*corev1.Pod{}, cache: map[string]*corev1.Pod{}}
		written := map[string]int{}   // the newest version that we were told of, by pod
		deleted := map[string]bool{}  // by us
		finished := map[string]bool{} // the cache showed the end
		created := map[string]bool{}
		answered := []func(){} // answers to our writes that are on their way
		count := 0
		pick := func(label string) (string, bool) {
			names := slices.Sorted(maps.Keys(s.pods))
			if len(names) == 0 {
				return "", false
			}
			return rapid.SampledFrom(names).Draw(t, label), true
		}
		answer := func(f func()) {
			if rapid.Bool().Draw(t, "answer at once") {
				f()
			} else {
				answered = append(answered, f)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"we create": func(*rapid.T) {
				count++
				p := s.next(pod("p"+strconv.Itoa(count), 0))
				s.set(o, p)
				answer(func() {
					o.RecordCreated(owner, p)
					created[p.Name] = true
					written[p.Name] = max(written[p.Name], number(p))
				})
			},
			"we patch": func(*rapid.T) {
				name, ok := pick("patched")
				if !ok || s.pods[name].DeletionTimestamp != nil {
					return
				}
				p := s.next(s.pods[name])
				s.set(o, p)
				answer(func() {
					o.RecordPatched(owner, p)
					if !created[name] && s.cache[name] == nil && !finished[name] {
						return // only the creator of a pod patches it before the cache shows it
					}
					written[name] = max(written[name], number(p))
				})
			},
			"we delete": func(*rapid.T) {
				name, ok := pick("deleted")
				if !ok || (s.cache[name] == nil && !created[name]) {
					return
				}
				p := s.next(s.pods[name])
				p.DeletionTimestamp = &metav1.Time{Time: o.now()}
				before := s.pods[name]
				s.set(o, p)
				o.RecordDeleted(owner, before)
				deleted[name] = true
			},
			"another client writes": func(*rapid.T) {
				if name, ok := pick("written"); ok {
					s.set(o, s.next(s.pods[name]))
				}
			},
			"a pod ends": func(*rapid.T) {
				if name, ok := pick("ended"); ok {
					s.end(o, name)
				}
			},
			"an answer comes": func(*rapid.T) {
				if len(answered) > 0 {
					answered[0]()
					answered = answered[1:]
				}
			},
			"the cache goes on": func(*rapid.T) {
				if len(s.pending) == 0 {
					return
				}
				before := maps.Clone(s.cache)
				s.pending[0]()
				s.pending = s.pending[1:]
				for name := range before {
					if s.cache[name] == nil {
						finished[name] = true
					}
				}
			},
			"": func(t *rapid.T) {
				mark := o.TakeMark()
				var list []*corev1.Pod
				for _, name := range slices.Sorted(maps.Keys(s.cache)) {
					list = append(list, s.cache[name])
				}
				for len(s.pending) > 0 && rapid.Bool().Draw(t, "the cache goes on while it is listed") {
					before := maps.Clone(s.cache)
					s.pending[0]()
					s.pending = s.pending[1:]
					for name := range before {
						if s.cache[name] == nil {
							finished[name] = true
						}
					}
				}
				out, late := o.ApplyWrites(owner, mark, slices.Clone(list), deadline)
				if len(late) != 0 {
					t.Fatalf("%v are late at once", described(late))
				}
				inList, seen := map[string]bool{}, map[string]bool{}
				for _, p := range list {
					inList[p.Name] = true
				}
				for _, p := range out {
					if seen[p.Name] {
						t.Fatalf("%s is there twice", p.Name)
					}
					seen[p.Name] = true
					if deleted[p.Name] && p.DeletionTimestamp == nil {
						t.Fatalf("%s is alive, but we deleted it", p.Name)
					}
					if !deleted[p.Name] && number(p) < written[p.Name] {
						t.Fatalf("%s is shown at %s, but we wrote %d", p.Name, p.ResourceVersion, written[p.Name])
					}
					if finished[p.Name] && !inList[p.Name] && s.cache[p.Name] == nil {
						// It may linger for the one list that was made while it ended.
						again, _ := o.ApplyWrites(owner, o.TakeMark(), slices.Collect(maps.Values(s.cache)), deadline)
						for _, p := range again {
							if finished[p.Name] {
								t.Fatalf("%s is back", p.Name)
							}
						}
					}
				}
				for name := range created {
					if !seen[name] && !finished[name] {
						t.Fatalf("%s is missing, but we created it", name)
					}
				}
			},
		})
	})
}

func number(p *corev1.Pod) int {
	n, _ := strconv.Atoi(p.ResourceVersion)
	return n
}
