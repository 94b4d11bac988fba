package cloneset

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// sight is what there is at an instant.
type sight struct {
	active, available int
	updated           int  // and not going
	counted           int  // towards the replicas
	going             int  // asked to be deleted, or preparing it
	single            bool // there is no other revision to keep pods at
}

// look counts what there is, by the same rules as the controller (CS-02), but
// from the API server.
func (s *sim) look() sight {
	set := s.set()
	var pods []*corev1.Pod
	for _, p := range s.all() {
		if !inactive(p) && metav1Controlled(p, s.uid) && p.Labels["app"] == "web" {
			pods = append(pods, p)
		}
	}
	out, newest, number := sight{active: len(pods)}, "", int64(0)
	for _, o := range s.last {
		if r, ok := o.(*appsv1.ControllerRevision); ok && r.Revision > number {
			newest, number = r.Name, r.Revision
		}
	}
	out.single = set.Status.CurrentRevision == "" || set.Status.CurrentRevision == newest
	w := &world{set: set, history: revision.History{}}
	for _, p := range facts.NewSet().Update(pods, facts.Terms{}, facts.NewTopology(), func(p *corev1.Pod) bool {
		return revision.Same(p.Labels[revisionLabel], newest)
	}) {
		add(&out.available, p.Available(time.Duration(set.Spec.MinReadySeconds)*time.Second, s.now))
		going := w.specified(p) || p.State == kruise.LifecycleStatePreparingDelete
		add(&out.going, going)
		add(&out.counted, p.State != kruise.LifecycleStatePreparingDelete || !set.Spec.ScaleStrategy.ExcludePreparingDelete)
		add(&out.updated, p.Facts.Updated && !going)
	}
	return out
}

func metav1Controlled(p *corev1.Pod, uid types.UID) bool {
	return len(p.OwnerReferences) > 0 && p.OwnerReferences[0].UID == uid
}

// judge holds a write of the controller to what it promises at every instant.
func (s *sim) judge(what string, before sight) {
	set, after := s.set(), s.look()
	strategy, err := resolve(set)
	if err != nil {
		s.t.Fatal(err)
	}
	complain := func(format string, args ...any) {
		if s.broken == "" { // writes are made by goroutines, which may not fail a test
			s.broken = fmt.Sprintf("%s "+format, append([]any{what}, args...)...)
		}
	}
	if least := replicas(set) - strategy.MaxUnavailable; after.available < before.available && after.available < least {
		complain("leaves %d pods available, there must be %d", after.available, least)
	}
	if most := replicas(set) + strategy.MaxSurge; after.counted > before.counted && after.counted > most {
		complain("makes %d pods, there may be %d", after.counted, most)
	}
	if most := replicas(set) - strategy.Partition; !after.single && after.updated > before.updated && after.updated > most {
		complain("makes %d pods updated, there may be %d", after.updated, most)
	}
}
