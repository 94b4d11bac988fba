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

// reduceSurplus deletes children of no subset, such as of a renamed one, and children of other kinds. Children with ready pods stay
// as replacements until pods of the subsets are available. They keep as many pods as the subsets lack.
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

// giveUpAgain is the time between giving up one child and the next: a quota does not notice a deletion at once.
const giveUpAgain = time.Minute

// findChildToGiveUp returns the child that is deleted although its pods are replacements, -1 for none. Otherwise, if a quota on the number
// of workloads refuses the children of subsets, each would wait for the other. It chooses the child with the fewest ready pods, one at a
// time: the next only after a child was created in its room, since another client may take that. Children of another kind count for another
// quota. If a child is deleted in any case, no other is given up.
//
// The child is deleted with all of its pods at once. A quota of this kind counts objects, so scaling the child in first makes no more room.
// The pods of the new child are created after the old one is gone in any case, so each pod that was deleted earlier would only
// be missing for longer. Orphaned pods would belong to no workload, and no controller would delete them.
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
	if known.gaveUp != "" && !known.usedRoom { // the child still exists if its deletion failed
		return slices.IndexFunc(surplus, func(c *child) bool { return c.GetUID() == known.gaveUp })
	}
	if left := known.gaveUpAt.Add(giveUpAgain).Sub(t.now); left > 0 {
		t.requeueWithin(left)
		return -1
	}
	known.gaveUp, known.gaveUpAt, known.usedRoom = surplus[found].GetUID(), t.now, false
	return found
}

// exceededQuota matches the message of API servers with what a quota has in use, and how much it allows.
var exceededQuota = regexp.MustCompile(`exceeded quota: .*, requested: (\S+), used: (\S+), limited: (\S+)`)

// lacksOneOfQuota reports whether a quota refuses a creation that it would allow with one workload less. If the limit of a quota was lowered,
// several children would have to be deleted, without effect until the last. Only the text of the error distinguishes a quota from a webhook.
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

// quantitiesOf parses amounts as API servers write them, such as "count/a=1,count/b=2". It omits what is no quantity.
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

// replicasToKeep returns how many replicas each child keeps, so that together they keep so many available pods; 0 for children to delete. A child
// whose pods are ready, but not available until minReadySeconds have passed, stays as well, but counts as no replacement yet. While pods
// of subsets wait for room, some replicas are given up in any case.
func replicasToKeep(surplus []*child, keep int32, crowded bool) []int32 {
	out, left, most := make([]int32, len(surplus)), keep, -1
	for i, c := range surplus {
		if left == 0 || c.ready == 0 {
			crowded = false // this child is deleted
			continue
		}
		out[i] = c.replicasFor(left)
		left -= min(left, c.available)
		crowded = crowded && out[i] == c.replicas
		if most < 0 || out[i] > out[most] {
			most = i
		}
	}
	if crowded && most >= 0 { // otherwise pods that are not ready would keep all of the room
		out[most] = min(keep, out[most])
	}
	return out
}

// replicasFor returns with how many replicas a child keeps so many of its available pods. A StatefulSet deletes the highest ordinals, available or
// not. The other kinds first delete pods that are not ready, and then those that have been ready for the shortest time.
func (c *child) replicasFor(available int32) int32 {
	if c.kind.Kind == "StatefulSet" {
		available += max(c.replicas-c.available, 0)
	}
	return min(available, c.replicas)
}

// roomOf is the divisor for the part of all pods that is given up, at least one, while pods of subsets find no node. The replacements may
// occupy the room of these pods, and each would wait for the other. A Deployment lacks as many pods in a rolling update.
const roomOf = 4

// podsToKeep returns how many of the desired pods of subsets are not available yet. The number is lower if subsets are crowded, which
// means that their pods wait for room.
func (t *reconcileRound) podsToKeep(ctx context.Context) (missing int32, crowded bool, err error) {
	var wanted int32
	for _, p := range t.parts {
		if t.keepsReplaced(p) { // the existing pods of the other kind need no replacements
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

// lacksRoom reports whether pods of a subset cannot be created, or have found no node in time although the subset selects nodes.
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
