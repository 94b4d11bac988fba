// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// KindWithClaimResize is a Kind whose pods have volume claims that grow with their templates while pods are
// updated (ASTS-14). A pod whose claims differ from their templates is not updated, whatever its
// revision. One with a claim that still grows counts as unavailable for the update, though it
// serves (ASTS-08).
type KindWithClaimResize interface {
	// ClaimGrowth is where the claims of a pod are.
	ClaimGrowth(f *Facts, pod *corev1.Pod) ClaimResize
	// GrowClaims has the claims of a pod ask for what their templates do, as far as they can.
	GrowClaims(ctx context.Context, r *Round, f *Facts, p *facts.Pod) error
}

// ClaimResize is where the claims of a pod are on the way to their templates. The zero value is of
// claims that are there, or that do not follow their templates.
type ClaimResize struct {
	// Differ are the differences between the claims and their templates.
	Differ []points.ClaimChange
	// Growing says which claim does not have the size that it asks for, "" if each has.
	Growing string
	// Pending is true while a volume itself grows: the pod is left alone. Its node grows the file
	// system, some of them only when the pod starts.
	Pending bool
	// Trouble is why a claim does not grow, in the words of what resizes it; "" if none is known.
	Trouble string
}

// CanGrow reports whether a difference can be made up for by growing.
func (g ClaimResize) CanGrow() bool {
	return slices.ContainsFunc(g.Differ, func(c points.ClaimChange) bool { return c.Obstacle == "" })
}

// classAgain is when a pod is asked about again whose claims cannot become what their templates
// ask for: storage classes are not watched.
const classAgain = 30 * time.Second

func (f *Facts) claimGrowth(pod *corev1.Pod) ClaimResize {
	if g, ok := f.kind.(KindWithClaimResize); ok {
		return g.ClaimGrowth(f, pod)
	}
	return ClaimResize{}
}

// IsSteady reports whether a pod is available, none of its claims grows and no restart of it is
// under way: else it uses up maxUnavailable (ASTS-08).
func (f *Facts) IsSteady(p *facts.Pod) bool {
	return f.IsAvailable(p) && f.claimGrowth(p.Pod).Growing == "" && !f.IsRestarting(p)
}

// resolveClaimChanges asks ahead of the walk about the pods whose claims differ from their templates: one
// that is to wait uses up no room, and one of which nothing could change is no candidate.
func (c *changeDecisions) resolveClaimChanges(ctx context.Context, o *orderedCandidates) error {
	left := o.candidates[:0]
	for _, one := range o.candidates {
		p := o.pods[one.Pod]
		g := c.f.claimGrowth(p.Pod)
		if one.Hold != nil || len(g.Differ) == 0 {
			left = append(left, one)
			continue
		}
		change, err := c.evaluatePod(ctx, p)
		switch {
		case err != nil:
			return err
		case change.Action == points.Wait:
			hold := change.waitHold(p)
			one.Hold = &hold
			c.r.RequeueAfter(classAgain)
		case !g.CanGrow() && c.f.Templates.HasRevision(p.Pod, c.f.TargetRevision()):
			continue
		}
		left = append(left, one)
	}
	o.candidates = left
	return nil
}

// growClaims has the claims of a pod grow before it is changed. It reports whether the pod is to be
// changed now: not before its volumes have grown, and not at all if it has its revision.
func (r *Round) growClaims(ctx context.Context, f *Facts, p *facts.Pod) (bool, error) {
	kind, ok := r.c.kind.(KindWithClaimResize)
	if !ok {
		return true, nil
	}
	g := kind.ClaimGrowth(f, p.Pod)
	if g.CanGrow() {
		return false, kind.GrowClaims(ctx, r, f, p)
	}
	return !g.Pending && !f.Templates.HasRevision(p.Pod, f.TargetRevision()), nil
}
