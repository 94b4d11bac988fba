// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
)

// reduceSurplus deletes children of no subset, as of one that has another name now, and those of other kinds. Those that have ready
// pods stay, with as many pods as subsets lack: they stand in until pods of the subsets are available.
func (t *reconcileRound) reduceSurplus(ctx context.Context) error {
	surplus, err := t.surplusToDelete(ctx)
	if len(surplus) == 0 || err != nil {
		return err
	}
	keep, crowded, err := t.podsToKeep(ctx)
	if err != nil {
		return err
	}
	stays := replicasToKeep(surplus, keep, crowded)
	if i := t.findChildToGiveUp(surplus, stays); i >= 0 {
		stays[i] = 0
	}
	var remove []*child
	var errs []error
	for i, stay := range stays {
		c := surplus[i]
		if stay == 0 {
			remove = append(remove, c)
			continue
		}
		t.standing = append(t.standing, fmt.Sprintf("%s (%d)", c.subsetName(), stay))
		t.kept += stay
		if stay == c.replicas {
			continue
		}
		if _, err := t.scaleChild(ctx, c, stay); err != nil {
			errs = append(errs, err)
		}
	}
	gone, err := t.deleteAll(ctx, remove)
	if len(gone) > 0 {
		names := make([]string, len(gone))
		for i, c := range gone {
			names[i] = c.subsetName()
		}
		slices.Sort(names)
		t.r.Events.Eventf(t.d, corev1.EventTypeNormal, kruise.SuccessfulUpdateSubsetReason, kruise.DeleteSubsetMessage, len(names), strings.Join(names, ", "))
	}
	return message.JoinErrors(append(errs, err)...)
}

// giveUpAgain is how long after a child was given up the next one may be: a quota does not count at once what is gone.
const giveUpAgain = time.Minute

// findChildToGiveUp returns which child goes though it stands in, -1 for none. A quota on the number of workloads refuses those of
// subsets, and each would wait for the other. It is that with the fewest ready pods, and one at a time: not the next before a child was
// created in its room, which another client may have taken. Those of another kind count for another quota, and one that goes in any case is
// enough.
//
// It goes with all of its pods at once. A quota of this kind counts objects, so a child that is scaled in first makes no more room than
// one that keeps its pods, and the pods of the new one come after the old one is gone in any case: each pod that went earlier would only
// be missing for longer. Pods that are orphaned instead would belong to no workload, and no controller would delete them.
func (t *reconcileRound) findChildToGiveUp(surplus []*child, stays []int32) int {
	if !slices.ContainsFunc(t.parts, func(p *subsetState) bool { return p.replicas > 0 && lacksOneOfQuota(p.refused) }) || len(t.findDuplicatesToDelete()) > 0 {
		return -1
	}
	found := -1
	for i, c := range surplus {
		switch {
		case c.kind.GroupVersionKind != t.kind.GroupVersionKind:
		case stays[i] == 0:
			return -1
		case found < 0 || c.ready < surplus[found].ready:
			found = i
		}
	}
	if found < 0 {
		return -1
	}
	known := t.r.memory.GetOrCreate(t.d)
	if known.gaveUp != "" && !known.usedRoom { // it is still there if its deletion failed
		return slices.IndexFunc(surplus, func(c *child) bool { return c.GetUID() == known.gaveUp })
	}
	if left := known.gaveUpAt.Add(giveUpAgain).Sub(t.now); left > 0 {
		t.requeueWithin(left)
		return -1
	}
	known.gaveUp, known.gaveUpAt, known.usedRoom = surplus[found].GetUID(), t.now, false
	return found
}

// exceededQuota is how API servers tell what a quota has in use, and how much it allows.
var exceededQuota = regexp.MustCompile(`exceeded quota: .*, requested: (\S+), used: (\S+), limited: (\S+)`)

// lacksOneOfQuota reports whether a quota refuses what was to be created, and would not with one workload less: of one that was lowered more
// would have to go, and for nothing. Only the text tells it from what a webhook refuses.
func lacksOneOfQuota(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	found := exceededQuota.FindStringSubmatch(err.Error())
	if found == nil {
		return false
	}
	used, limits := quantitiesOf(found[2]), quantitiesOf(found[3])
	for name, limit := range limits {
		if in, ok := used[name]; !ok || in.Cmp(limit) > 0 {
			return false
		}
	}
	return len(limits) > 0
}

// quantitiesOf reads amounts as API servers write them, such as "count/a=1,count/b=2"; what is none is left out.
func quantitiesOf(text string) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for pair := range strings.SplitSeq(text, ",") {
		name, amount, _ := strings.Cut(pair, "=")
		if q, err := resource.ParseQuantity(amount); err == nil {
			out[name] = q
		}
	}
	return out
}

// replicasToKeep is how many replicas children have that stand in for so many available pods, 0 for those that go. One whose pods are
// ready, and become available after minReadySeconds, stays, and stands in for none yet. While others wait for the room of their pods they
// give some up in any case.
func replicasToKeep(surplus []*child, keep int32, crowded bool) []int32 {
	out, left, most := make([]int32, len(surplus)), keep, -1
	for i, c := range surplus {
		if left == 0 || c.ready == 0 {
			crowded = false // it goes
			continue
		}
		out[i] = c.replicasFor(left)
		left -= min(left, c.available)
		crowded = crowded && out[i] == c.replicas
		if most < 0 || out[i] > out[most] {
			most = i
		}
	}
	if crowded && most >= 0 { // pods that are not ready below those that are have all of the room
		out[most] = min(keep, out[most])
	}
	return out
}

// replicasFor is how many replicas leave a child so many of its available pods. A StatefulSet deletes the highest ordinals, available or
// not; the other kinds delete first the pods that are not ready, and then those that have been ready for the shortest time.
func (c *child) replicasFor(available int32) int32 {
	if c.kind.Kind == "StatefulSet" {
		available += max(c.replicas-c.available, 0)
	}
	return min(available, c.replicas)
}

// roomOf is the part of all pods that is given up, at least one, while pods of subsets find no node: those that stand in may
// have taken the room of these, and each would wait for the other. A Deployment lacks as many in a rolling update.
const roomOf = 4

// podsToKeep is how many pods of subsets are not available yet, of those that they are to have. It is fewer where they are crowded:
// they wait for room.
func (t *reconcileRound) podsToKeep(ctx context.Context) (missing int32, crowded bool, err error) {
	var wanted int32
	for _, p := range t.parts {
		if t.keepsReplaced(p) { // no other child stands in for pods that are there
			continue
		}
		want := max(p.replicas-int32(p.reserved), 0) //nolint:gosec // pods are fewer
		wanted += want
		available := int32(0)
		if p.child != nil && p.child.GetDeletionTimestamp() == nil {
			available = p.child.available
		}
		if available >= want {
			continue
		}
		missing += want - available
		lacks, err := t.lacksRoom(ctx, p)
		if err != nil {
			return 0, false, err
		}
		crowded = crowded || lacks
	}
	if crowded {
		missing = max(missing-max(wanted/roomOf, 1), 0)
	}
	return missing, crowded, nil
}

// lacksRoom reports whether pods of a subset cannot be created, or have found no node in time though there are nodes for them.
func (t *reconcileRound) lacksRoom(ctx context.Context, p *subsetState) (bool, error) {
	if p.child == nil {
		return false, nil
	}
	if p.child.refused && p.child.pods < p.child.replicas {
		return true, nil
	}
	if p.pods == nil {
		if err := t.podsOf(ctx, p); err != nil {
			return false, err
		}
	}
	lacks := false
	for _, pod := range p.pods {
		stuck, again := subset.IsUnschedulable(pod, t.criticalDuration(), t.now)
		if lacks = lacks || stuck; !stuck && again > 0 {
			t.requeueWithin(max(again, subset.Unhurried))
		}
	}
	if !lacks {
		return false, nil
	}
	nowhere, err := t.selectsNoNode(ctx, p)
	return !nowhere, err
}
