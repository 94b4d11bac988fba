// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// compareChildren orders children: the first child of a subset stays, and the others are duplicates. Children that are being deleted come last.
// A child with pods comes before one without, since deleting it would delete these pods. Otherwise the older one comes first.
func compareChildren(a, b *child) int {
	rank := func(c *child) int {
		switch {
		case c.GetDeletionTimestamp() != nil:
			return 2
		case c.pods == 0:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
}

// findDuplicatesToDelete returns the children of subsets that have another child, except in subsets that are held.
func (t *reconcileRound) findDuplicatesToDelete() []*child {
	return slices.DeleteFunc(slices.Clone(t.duplicates), func(c *child) bool { return t.placement.HeldAt(c.subsetName()) != nil })
}

// deleteDuplicates deletes children of subsets that have another child. The cache may not show that the other one is being deleted or is
// gone, so the API server is read first.
func (t *reconcileRound) deleteDuplicates(ctx context.Context) error {
	var remove []*child
	var errs []error
	for _, c := range t.findDuplicatesToDelete() {
		stays, err := t.hasLivingChild(ctx, c.subsetName())
		switch {
		case err != nil:
			errs = append(errs, err)
		case stays:
			remove = append(remove, c)
		default:
			t.requeueWithin(requeue.Soon)
		}
	}
	_, err := t.deleteAll(ctx, remove)
	if err = message.JoinErrors(append(errs, err)...); err != nil {
		t.r.recordEventOnce(t.d, kruise.FailedDeleteDuplicatedSubsetsReason, err.Error())
	}
	return err
}

// hasLivingChild reports whether the child that stays in a subset exists in the API server and is not being deleted.
func (t *reconcileRound) hasLivingChild(ctx context.Context, subset string) (bool, error) {
	i := slices.IndexFunc(t.parts, func(p *subsetState) bool { return p.Name == subset })
	if i < 0 || t.parts[i].child == nil {
		return false, nil
	}
	c, found := t.parts[i].child, t.kind.make()
	if err := t.r.Live.Get(ctx, client.ObjectKeyFromObject(c), found); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking for the %s of subset %s: %w", t.kind.Kind, subset, err)
	} else if err != nil {
		return false, nil
	}
	return found.GetUID() == c.GetUID() && found.GetDeletionTimestamp() == nil, nil
}
