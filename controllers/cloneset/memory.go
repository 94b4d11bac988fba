package cloneset

import (
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
)

// memory is what is kept of a CloneSet between reconciles. It only saves work:
// losing it changes no decision.
type memory struct {
	uid   types.UID
	facts *facts.Set
	// revisions are those that we wrote and that the cache may not show yet, by
	// name: without one of them its pods could not be updated in place, and the
	// next would get its number.
	revisions map[string]ownRevision
	// limited is the limit that the last event ScaleUpLimited told, -1 for none.
	limited int
	// proven is the revision whose pods could all be made the last time.
	proven string
	// status is the last one that we wrote, which the cache may not show yet.
	status ownStatus
	// lostRaces counts the rounds in a row that ended because of conflicts.
	lostRaces int
	mu        sync.Mutex // pods are created in parallel; it guards what follows
	// foreign are instance ids whose pod is there, but not ours.
	foreign map[string]bool
	// tried are instance ids that pods could not be made with. They are used
	// again before any other: their claims may be there, and so may the pod if
	// only the answer was lost, which is then known by its name.
	tried map[string]bool
	// deletedClaims are claims that we deleted, until the cache shows it.
	deletedClaims map[types.UID]bool
}

func newMemory(uid types.UID) *memory {
	return &memory{uid: uid, facts: facts.NewSet(), revisions: map[string]ownRevision{}, limited: -1, foreign: map[string]bool{}, tried: map[string]bool{}, deletedClaims: map[types.UID]bool{}}
}

type ownRevision struct {
	*appsv1.ControllerRevision
	since time.Time
}

// withOwn lays our own revisions over those of the cache, until it shows them, or
// for so long: then somebody has deleted them.
func (m *memory) withOwn(cached []appsv1.ControllerRevision, oldest time.Time) []*appsv1.ControllerRevision {
	var out []*appsv1.ControllerRevision
	for i := range cached {
		r := &cached[i]
		if own, ok := m.revisions[r.Name]; ok && r.Revision < own.Revision {
			r = own.ControllerRevision
		} else {
			delete(m.revisions, r.Name)
		}
		out = append(out, r)
	}
	for name, own := range m.revisions {
		switch {
		case own.since.Before(oldest):
			delete(m.revisions, name)
		case !slices.ContainsFunc(out, func(r *appsv1.ControllerRevision) bool { return r.Name == name }):
			out = append(out, own.ControllerRevision)
		}
	}
	return out
}

// ownStatus is a status that we wrote, and the resource version it was stored with.
type ownStatus struct {
	kruise.CloneSetStatus
	version string
	// unknown is true when the answer to a write was lost: what is stored may be
	// the old status or the new one.
	unknown bool
}

// overlay replaces the status of a CloneSet that the cache shows as it was before our
// last write of it.
func (s *ownStatus) overlay(set *kruise.CloneSet) {
	if s.version == "" {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(set.ResourceVersion, s.version); err == nil && order < 0 {
		set.Status = *s.CloneSetStatus.DeepCopy()
	}
}

// wrote notes the status that a write stored, or that the answer to it was lost.
func (s *ownStatus) wrote(set *kruise.CloneSet, err error) {
	if err != nil {
		s.unknown = s.unknown || indeterminate(err)
		return
	}
	*s = ownStatus{CloneSetStatus: *set.Status.DeepCopy(), version: set.ResourceVersion}
}

// take notes that the pod of an id is somebody else's.
func (m *memory) take(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.foreign[id] = true
}

func (m *memory) taken(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.foreign[id]
}

// try notes that the pod of an id could not be made, or that it could.
func (m *memory) try(id string, made bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if made {
		delete(m.tried, id)
	} else {
		m.tried[id] = true
	}
}

// toTry are the ids that are to be tried again, in order.
func (m *memory) toTry() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.tried))
}

func (m *memory) deletedClaim(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deletedClaims[uid] = true
}

// usable says which of the claims that the cache shows pods may use, and forgets
// what the cache has caught up with.
func (m *memory) usable(claims []corev1.PersistentVolumeClaim) (usable, going []*corev1.PersistentVolumeClaim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	late := map[types.UID]bool{}
	for i := range claims {
		switch c := &claims[i]; {
		case c.DeletionTimestamp != nil:
			going = append(going, c)
		case m.deletedClaims[c.UID]:
			late[c.UID] = true
			going = append(going, c)
		default:
			usable = append(usable, c)
		}
	}
	m.deletedClaims = late
	return usable, going
}

func (r *Reconciler) memoryOf(set *kruise.CloneSet) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := client.ObjectKeyFromObject(set)
	m := r.sets[name]
	if m != nil && m.uid != set.UID { // another CloneSet had the name before
		r.drop(name, m)
		m = nil
	}
	if m == nil {
		m = newMemory(set.UID)
		r.sets[name] = m
	}
	return m
}

// forget drops all that is kept of a CloneSet that is gone. Most go without
// having been seen to: only their name is known then.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.sets[name]; m != nil {
		r.drop(name, m)
	}
}

func (r *Reconciler) drop(name types.NamespacedName, m *memory) {
	delete(r.sets, name)
	r.ranker.Forget(string(m.uid))
	r.rounds.Forget(string(m.uid))
	r.overlay.Forget(m.uid)
}
