// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/engine/decision"
)

// pods is a round about a workload with pods of these names.
type pods []string

func (p pods) ExplainWorkload() Answer { return Answer{Message: fmt.Sprint(len(p))} }
func (p pods) CountBytes() int         { return 0 }
func (p pods) ExplainPods() []Answer   { return make([]Answer, len(p)) }
func (p pods) ExplainPod(_, name string) (Answer, bool) {
	for _, n := range p {
		if n == name {
			return Answer{Message: name}, true
		}
	}
	return Answer{}, false
}

func workload(namespace, name, uid string) decision.Subject {
	return decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: namespace, Name: name, UID: uid}
}

func TestStore(t *testing.T) {
	set := schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}
	s := NewStore()
	s.PutRound(workload("shop", "web", "1"), pods{"web-a", "web-b-c"})
	s.PutRound(workload("shop", "web-b", "2"), pods{"web-b-d"})
	s.PutRound(workload("bank", "web", "3"), pods{"web-a"})

	for name, want := range map[string]bool{"web-a": true, "web-b-c": true, "web-b-d": true, "web-x": false, "we": false, "": false} {
		if a, ok := s.ExplainPod("shop", name); ok != want || ok && a.Message != name {
			t.Errorf("pod %q: %v %v", name, a.Message, ok)
		}
	}
	if _, ok := s.ExplainPod("bank", "web-b-d"); ok {
		t.Error("a pod of another namespace is found")
	}
	for _, subject := range []decision.Subject{
		{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "bank", Name: "web-b"}, {Group: "apps.kruise.io", Kind: "StatefulSet", Namespace: "shop", Name: "web"},
		{Group: "apps", Kind: "CloneSet", Namespace: "shop", Name: "web"}, {Kind: "CloneSet", Namespace: "shop", Name: "web"},
	} {
		if _, ok := s.ExplainWorkload(schema.GroupKind{Group: subject.Group, Kind: subject.Kind}, subject.Namespace, subject.Name); ok {
			t.Errorf("%v is found", subject)
		}
		if _, ok := s.PodsOf(schema.GroupKind{Group: subject.Group, Kind: subject.Kind}, subject.Namespace, subject.Name); ok {
			t.Errorf("pods of %v are found", subject)
		}
	}

	s.PutRound(workload("shop", "web", "1"), pods{"web-e"})
	if a, ok := s.ExplainWorkload(set, "shop", "web"); !ok || a.Message != "1" {
		t.Errorf("the newest round is not told: %v", a.Message)
	}
	if got, ok := s.PodsOf(set, "shop", "web"); !ok || len(got) != 1 {
		t.Errorf("%d pods", len(got))
	}
	if got := fmt.Sprint(names(s)); got != "[bank/web shop/web shop/web-b]" {
		t.Errorf("workloads are %s", got)
	}

	// Deleted and made anew: the last to go is the first of its name.
	s.PutRound(workload("shop", "web", "4"), pods{"web-f", "web-g"})
	if a, _ := s.ExplainWorkload(set, "shop", "web"); a.Message != "2" {
		t.Errorf("the answer is about the one before it: %s pods", a.Message)
	}
	s.ForgetWorkload("1")
	if a, ok := s.ExplainWorkload(set, "shop", "web"); !ok || a.Message != "2" {
		t.Errorf("with the first, the second is forgotten: %v", a.Message)
	}
	s.ForgetWorkload("4")
	if _, ok := s.ExplainWorkload(set, "shop", "web"); ok {
		t.Error("it is not forgotten")
	}
}

func names(s *Store) []string {
	var out []string
	for _, w := range s.ListWorkloads() {
		out = append(out, w.Namespace+"/"+w.Name)
	}
	return out
}

func TestStoreIsForMany(t *testing.T) {
	set := schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}
	s := NewStore()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				uid := fmt.Sprint(j % 5)
				s.PutRound(workload("shop", "web"+uid, uid), pods{"web" + uid + "-a"})
				s.ExplainPod("shop", "web0-a")
				s.ExplainWorkload(set, "shop", "web1")
				s.ListWorkloads()
				if i == 0 {
					s.ForgetWorkload(uid)
				}
			}
		})
	}
	all.Wait()
}

// hosted is a round about a cluster-scoped workload, whose pods are named with their namespaces.
type hosted []string

func (h hosted) ExplainWorkload() Answer { return Answer{} }
func (h hosted) CountBytes() int         { return 0 }
func (h hosted) ExplainPods() []Answer   { return nil }
func (h hosted) ExplainPod(namespace, name string) (Answer, bool) {
	return Answer{Message: namespace + "/" + name, Workload: decision.Subject{Name: h[0]}}, slices.Contains(h[1:], namespace+"/"+name)
}

// Of pods of one name in several namespaces each has the answer about it, by each
// SidecarSet whose containers it has, and by no workload that does not own it.
func TestSidecarsOfAPod(t *testing.T) {
	s := NewStore()
	s.PutRound(workload("shop", "web", "1"), pods{"web-0"})
	for _, h := range []hosted{{"tracing", "shop/web-0"}, {"logs", "shop/web-0", "bank/web-0"}} {
		s.PutRound(decision.Subject{Kind: "SidecarSet", Name: h[0], UID: h[0]}, h)
	}
	for pod, want := range map[[2]string]string{
		{"shop", "web-0"}: "logs shop/web-0, tracing shop/web-0", {"bank", "web-0"}: "logs bank/web-0", {"bank", "web-1"}: "", {"play", "web-0"}: "",
	} {
		var got []string
		for _, a := range s.ExplainSidecars(pod[0], pod[1]) {
			got = append(got, a.Workload.Name+" "+a.Message)
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%v: %q, want %q", pod, got, want)
		}
	}
	if a, ok := s.ExplainPod("bank", "web-0"); ok {
		t.Errorf("no workload owns it, and one says %q", a.Message)
	}
}
