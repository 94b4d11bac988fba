// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
)

// Memory is the state that a Controller keeps for a workload between rounds. It only saves work: losing it
// changes no decision.
type Memory struct {
	uid       types.UID
	facts     *facts.Set
	revisions Revisions
	// statusWritten is when the status was last written.
	statusWritten time.Time
	// stuck has the messages about pods that are stuck.
	stuck map[types.UID]string
	// requested are the requests of restarts that the controller created and that the cache may not show yet,
	// by name, with the time of their creation. restarted is the version of the workload from which a complete restart was
	// removed; the cache may still show that version.
	requested map[string]time.Time
	restarted string
	// unreadable is the error of the last round, if that could not read the state.
	unreadable string
	// restartHeld is the waiting restart that the last event reported, with the reason.
	restartHeld string
	// scaleHeld is the reason why scaling was held in the last round.
	scaleHeld string
	// surgeHeld is that reason if it applies to the pods that the update creates, as of the last round that evaluated them.
	surgeHeld string
	// undecided has for each pod since when no decision about its update has been made.
	undecided map[types.NamespacedName]time.Time
	replaced  replacedPods
	// passedByUpdate are the budgets and rules that refused pods in rounds that ended before all candidates had their turn. The next round begins
	// after the refused pods. passedBeside are those for writes beside the update.
	passedByUpdate, passedBeside refusals
	own                          any
	ahead                        Ahead // nil without one
}

// Revisions are the revisions that the controller wrote and that the cache may not show yet, by name.
// If one of them were missing, its pods could not be updated in place, and the next revision would get the same
// number.
type Revisions map[string]ownRevision

type ownRevision struct {
	*appsv1.ControllerRevision
	since time.Time
}

// OverlayCached lays the controller's own revisions over those of the cache, until the cache shows them. It drops
// a revision that the cache does not show for too long: another client has deleted it.
func (m Revisions) OverlayCached(cached []appsv1.ControllerRevision, oldest time.Time) []*appsv1.ControllerRevision {
	var out []*appsv1.ControllerRevision
	seen := map[string]bool{}
	for i := range cached {
		r := &cached[i]
		if own, ok := m[r.Name]; ok && r.Revision < own.Revision {
			r = own.ControllerRevision
		} else {
			delete(m, r.Name)
		}
		seen[r.Name] = true
		out = append(out, r)
	}
	for name, own := range m {
		switch {
		case own.since.Before(oldest):
			delete(m, name)
		case !seen[name]:
			out = append(out, own.ControllerRevision)
		}
	}
	return out
}

func (c *Controller) memoryOf(workload client.Object) *Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := client.ObjectKeyFromObject(workload)
	m := c.memories[name]
	if m != nil && m.uid != workload.GetUID() { // another workload had the name before
		c.dropMemory(name, m)
		m = nil
	}
	if m == nil {
		m = &Memory{uid: workload.GetUID(), facts: facts.NewSet(facts.WithOrdinals(c.typ.Ordinals), facts.WithNodes(c.typ.NodeOf)), revisions: Revisions{}, requested: map[string]time.Time{}}
		if c.typ.Memory != nil {
			m.own = c.typ.Memory()
		}
		if c.ahead != nil {
			m.ahead = c.ahead()
		}
		c.memories[name] = m
	}
	return m
}

// forgetWorkload drops everything that is kept of a workload that is gone. It takes a name, since for most workloads
// no object is left to read at that time.
func (c *Controller) forgetWorkload(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.memories[name]; m != nil {
		c.dropMemory(name, m)
	}
}

func (c *Controller) dropMemory(name types.NamespacedName, m *Memory) {
	delete(c.memories, name)
	c.ranker.ForgetWorkload(string(m.uid))
	c.Rounds.ForgetWorkload(string(m.uid))
	c.overlay.ForgetOwner(m.uid)
}
