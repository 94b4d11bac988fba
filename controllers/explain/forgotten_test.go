// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision"
)

// sized is a round about one pod that takes some memory, with and without places of pods.
type (
	sized struct {
		pods
		bytes int
	}
	placing struct{ sized }
)

func (s sized) CountBytes() int { return s.bytes }

func (p placing) ExplainPlacement(pod string) (Answer, bool) {
	return Answer{Message: pod}, len(p.pods) > 0 && p.pods[0] == pod
}

var cloneSets = schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}

// Together no more is kept than the bound: of what was decided longest ago the answer says that it is not known.
func TestExplanationsThatAreForgottenAreTold(t *testing.T) {
	const size = 10 << 10
	s := NewStore(WithMaxBytes(2 * (storedBytes + size)))
	for i := range 3 {
		name := fmt.Sprint("web", i)
		s.PutRound(workload("shop", name, name), sized{pods{name + "-a"}, size})
	}
	verdict := func(i int) Verdict {
		a, ok := s.ExplainWorkload(cloneSets, "shop", fmt.Sprint("web", i))
		if !ok {
			t.Fatalf("nothing is said of workload %d", i)
		}
		return a.Verdict
	}
	if verdict(0) != Forgotten || verdict(1) == Forgotten || verdict(2) == Forgotten {
		t.Errorf("of three workloads with room for two: %q, %q, %q", verdict(0), verdict(1), verdict(2))
	}
	a, _ := s.ExplainWorkload(cloneSets, "shop", "web0")
	if a.Reason != "NotRemembered" || !strings.Contains(a.Message, "is not remembered") || !strings.Contains(a.Message, "known again") || a.Decided.IsZero() {
		t.Errorf("the answer is %+v", a)
	}
	if a, ok := s.ExplainPod("shop", "web0-a"); !ok || a.Verdict != Forgotten || a.Subject.Name != "web0-a" || !strings.Contains(a.Message, "What CloneSet web0 decided is not remembered") {
		t.Errorf("of a pod of it the answer is %v %+v", ok, a)
	}
	if a, ok := s.ExplainPod("shop", "web1-a"); !ok || a.Verdict == Forgotten {
		t.Errorf("of a pod of another the answer is %v %+v", ok, a)
	}
	if _, ok := s.ExplainPod("shop", "web9-a"); ok {
		t.Error("a pod of no workload has an answer")
	}
	s.PutRound(workload("shop", "web0", "web0"), sized{pods{"web0-a"}, size})
	if verdict(0) == Forgotten || verdict(1) != Forgotten {
		t.Errorf("decided anew: %q, and the oldest %q", verdict(0), verdict(1))
	}
	s.PutRound(workload("shop", "web2", "web2"), sized{pods{"web2-a"}, 100 * size})
	if a, _ := s.ExplainWorkload(cloneSets, "shop", "web2"); a.Verdict != Forgotten || !strings.Contains(a.Message, "an explanation of it takes") || verdict(0) == Forgotten {
		t.Errorf("of one that is too large by itself: %+v, and of another %q", a, verdict(0))
	}
	if got := len(s.ListWorkloads()); got != 3 {
		t.Errorf("%d workloads are listed", got)
	}
}

// What places pods, or gives them sidecars, says so about each pod that it could be about.
func TestForgottenPlacesAndSidecarsAreTold(t *testing.T) {
	const size = 10 << 10
	s := NewStore(WithMaxBytes(storedBytes + size))
	s.PutRound(decision.Subject{Kind: "WorkloadSpread", Namespace: "shop", Name: "spread", UID: "1"}, placing{sized{pods{"web-a"}, size}})
	if a, ok := s.ExplainPlacement("shop", "web-a"); !ok || a.Verdict == Forgotten {
		t.Errorf("before: %v %+v", ok, a)
	}
	s.PutRound(decision.Subject{Kind: "SidecarSet", Name: "logs", UID: "2"}, sized{pods{"web-a"}, size})
	if a, ok := s.ExplainPlacement("shop", "web-a"); !ok || a.Verdict != Forgotten || a.Workload.Name != "spread" {
		t.Errorf("a place that is forgotten: %v %+v", ok, a)
	}
	if _, ok := s.ExplainPlacement("bank", "web-a"); ok {
		t.Error("a pod of another namespace has a place")
	}
	s.PutRound(workload("shop", "web", "3"), sized{pods{"web-a"}, size})
	if got := s.ExplainSidecars("shop", "web-a"); len(got) != 1 || got[0].Verdict != Forgotten || got[0].Workload.Name != "logs" {
		t.Errorf("sidecars that are forgotten: %+v", got)
	}
}

func TestExplanationsNeverTakeMoreThanTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewStore(WithMaxBytes(rapid.IntRange(0, 20_000).Draw(t, "bound")))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			uid := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "uid"))
			if rapid.IntRange(0, 4).Draw(t, "gone") == 0 {
				s.ForgetWorkload(uid)
			} else {
				s.PutRound(workload("shop", "web"+uid[:1], uid), sized{nil, rapid.IntRange(0, 10_000).Draw(t, "bytes")})
			}
			sum, remembered := 0, 0
			for at, r := range s.rounds {
				if s.places[r.subject.UID] != at {
					t.Fatalf("%v is not found by its UID", r.subject)
				}
				if _, lost := r.round.(*droppedRound); lost != (r.element == nil) {
					t.Fatalf("%s is forgotten: %v, and is in the list: %v", r.subject.Name, lost, r.element != nil)
				} else if !lost {
					sum += r.bytes
					remembered++
				}
			}
			if sum != s.bytes || s.bytes > s.max || remembered != s.order.Len() || len(s.places) != len(s.rounds) {
				t.Fatalf("%d bytes of %d are counted, there are %d; %d rounds, %d in the list, %d of %d places", s.bytes, s.max, sum, remembered, s.order.Len(), len(s.places), len(s.rounds))
			}
		}
	})
}
