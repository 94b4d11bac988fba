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
// revision is. A pod with a claim that is still growing counts as unavailable for the update, though it
// is ready (ASTS-08).
type KindWithClaimResize interface {
	// ClaimGrowth returns how far the claims of a pod follow their templates.
	ClaimGrowth(f *Facts, pod *corev1.Pod) ClaimResize
	// GrowClaims sets the requests of the claims of a pod to those of their templates, where that is possible.
	GrowClaims(ctx context.Context, r *Round, f *Facts, p *facts.Pod) error
}

// ClaimResize is how far the claims of a pod follow their templates. The zero value is for
// claims that fulfil their templates, or that are not to follow them.
type ClaimResize struct {
	// Differ are the differences between the claims and their templates.
	Differ []points.ClaimChange
	// Growing says which claim does not have the size that it requests, "" if each has.
	Growing string
	// Pending is true while a volume itself grows: the pod does not change meanwhile. After that its node grows the file
	// system; some nodes do that only when the pod starts.
	Pending bool
	// Trouble is why a claim does not grow, as the resizer reports it; "" if nothing is reported.
	Trouble string
}

// CanGrow reports whether any difference can be resolved by growing a claim.
func (g ClaimResize) CanGrow() bool {
	return slices.ContainsFunc(g.Differ, func(c points.ClaimChange) bool { return c.Obstacle == "" })
}

// classAgain is the time after which a pod whose claims cannot follow their templates is evaluated
// again: storage classes are not watched.
const classAgain = 30 * time.Second

func (f *Facts) claimGrowth(pod *corev1.Pod) ClaimResize {
	if g, ok := f.kind.(KindWithClaimResize); ok {
		return g.ClaimGrowth(f, pod)
	}
	return ClaimResize{}
}

// IsSteady reports whether a pod is available, none of its claims is growing and it is not restarting.
// A pod that is not steady uses up maxUnavailable (ASTS-08).
func (f *Facts) IsSteady(p *facts.Pod) bool {
	return f.IsAvailable(p) && f.claimGrowth(p.Pod).Growing == "" && !f.IsRestarting(p)
}

// resolveClaimChanges evaluates, before the walk, the pods whose claims differ from their templates. A pod
// that is to wait uses up no room, and a pod on which nothing could change is no candidate.
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

// growClaims makes the claims of a pod grow before the pod is changed. It reports whether the pod is to be
// changed now: not before its volumes have grown, and not at all if it has its target revision already.
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
