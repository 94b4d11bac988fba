// SPDX-License-Identifier: Apache-2.0

// Package overlay lets a controller read its own writes. It lays them
// over the pods of the cache until the cache shows them. So no decision is
// based on a pod as it was before the controller's own write, and the controller need not wait.
package overlay

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/versions"
)

// Mark is a moment in the order of the changes of an Overlay.
type Mark uint64

type entry struct {
	pod     *corev1.Pod // as written; with a deletionTimestamp when deleted
	deleted bool
	// known is when the cache had shown the pod, 0 before: if a list from
	// after that does not have the pod, the pod is gone.
	known Mark
	since time.Time
}

// Overlay holds the writes of one controller that its cache does not show yet.
type Overlay struct {
	mu     sync.Mutex
	now    func() time.Time
	clock  Mark
	owners map[types.UID]map[types.UID]*entry
	ended  tombstones
}

// New makes an empty Overlay.
func New(now func() time.Time) *Overlay {
	return &Overlay{now: now, clock: 1, owners: map[types.UID]map[types.UID]*entry{}, ended: newTombstones(now())}
}

// TakeMark returns a Mark to take before pods are listed from the cache. What the cache shows
// while they are listed may or may not be in the list.
func (o *Overlay) TakeMark() Mark {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clock++
	return o.clock
}

func (o *Overlay) putEntry(owner types.UID, e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended.hasPod(e.pod.UID) { // the answer came after the pod had ended
		return
	}
	pods := o.owners[owner]
	if pods == nil {
		pods = map[types.UID]*entry{}
		o.owners[owner] = pods
	}
	old := pods[e.pod.UID]
	if old != nil {
		if old.deleted && !e.deleted {
			return // a late answer to an earlier write does not undo a deletion
		}
		if !e.deleted && versions.IsNewer(old.pod, e.pod) {
			return
		}
		e.known = old.known // a created pod may be written again before the cache shows it
	}
	pods[e.pod.UID] = e
}

// RecordCreated notes a pod as the API server returned it.
func (o *Overlay) RecordCreated(owner types.UID, pod *corev1.Pod) {
	o.putEntry(owner, &entry{pod: pod, since: o.now()})
}

// RecordPatched notes a pod as the API server returned it.
func (o *Overlay) RecordPatched(owner types.UID, pod *corev1.Pod) {
	o.putEntry(owner, &entry{pod: pod, since: o.now(), known: o.TakeMark()})
}

// RecordDeleted notes that the deletion of a pod was accepted.
func (o *Overlay) RecordDeleted(owner types.UID, pod *corev1.Pod) {
	pod = pod.DeepCopy()
	if pod.DeletionTimestamp == nil {
		now := metav1.NewTime(o.now())
		pod.DeletionTimestamp = &now
	}
	o.putEntry(owner, &entry{pod: pod, since: o.now(), known: o.TakeMark(), deleted: true})
}

// ObservePod notes that the cache has shown a pod.
func (o *Overlay) ObservePod(owner, pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.owners[owner][pod]; e != nil && e.known == 0 {
		e.known = o.clock
	}
}

// ObserveDeletion notes that the cache has shown the deletion of a pod.
func (o *Overlay) ObserveDeletion(owner, pod types.UID) {
	o.ObservePod(owner, pod)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended.addPod(pod, o.now())
}

// ForgetOwner drops all writes of an owner that is gone.
func (o *Overlay) ForgetOwner(owner types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.owners, owner)
}

// ApplyWrites replaces pods of the cache, which were listed after the mark
// was taken, by the written ones, in place, and appends those that the list does not have. late has pods
// whose write the cache should have shown by now: the caller reads them from
// the API server and records the result.
func (o *Overlay) ApplyWrites(owner types.UID, mark Mark, pods []*corev1.Pod, deadline time.Duration) (out, late []*corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	entries := o.owners[owner]
	if len(entries) == 0 {
		return pods, nil
	}
	shown := make(map[types.UID]bool, len(pods))
	for i, pod := range pods {
		shown[pod.UID] = true
		e := entries[pod.UID]
		if e == nil {
			continue
		}
		if caughtUp(pod, e) {
			delete(entries, pod.UID)
			continue
		}
		pods[i] = e.pod
	}
	for uid, e := range entries {
		if !shown[uid] {
			if e.known != 0 && e.known < mark {
				delete(entries, uid)
				continue
			}
			pods = append(pods, e.pod)
		}
		if o.now().Sub(e.since) > deadline {
			late = append(late, e.pod)
		}
	}
	if len(entries) == 0 {
		delete(o.owners, owner)
	}
	return pods, late
}

// DropWrite forgets one write, after its pod was read from the API server.
func (o *Overlay) DropWrite(owner, pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.owners[owner], pod)
}

func caughtUp(cached *corev1.Pod, e *entry) bool {
	if e.deleted {
		return cached.DeletionTimestamp != nil
	}
	return !versions.IsNewer(e.pod, cached)
}
