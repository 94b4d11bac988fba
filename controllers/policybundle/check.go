// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
)

// mostBegun is how often a check that does not end is started. More than once, since the manager may also end during a check
// for another reason.
const mostBegun = 3

// clearFor is how long the write may take that ends a check whose reconcile was canceled.
const clearFor = 5 * time.Second

// errOthersChanged is why a bundle is not checked: the bundles that it would be checked with have changed while
// it waited.
var errOthersChanged = errors.New("other bundles have changed while it waited to be checked")

// runGateCheck takes a bundle through the gate when it is its turn. It writes to the status that the bundle waits, and that it is being
// checked, before it does so.
func (p *Publisher) runGateCheck(ctx context.Context, b policy.AnyPolicyBundle, found *fetch.Fetched, candidate *bundle.Bundle, beside bundle.Set) error {
	release, err := p.turn.acquireTurn(ctx, b.GetNamespace(), func() {
		if err := p.writeCheck(ctx, b, found, policy.PolicyCheckWaiting, "Another bundle is being checked."); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Telling that a bundle waits to be checked") // it waits all the same
		}
	})
	if err != nil {
		return err
	}
	defer release()
	if p.Host.PeerBundles(keyOf(b)).Revision() != beside.Revision() {
		return errOthersChanged // the next reconcile checks it with the current bundles
	}
	if err := p.writeCheck(ctx, b, found, policy.PolicyCheckRunning, ""); err != nil {
		return err
	}
	_, err = p.Gate.AdmitBundle(ctx, candidate, beside, p.Records())
	return err
}

// checksBegun is how often the check of an archive was started already, by this process or by earlier ones.
func checksBegun(b policy.AnyPolicyBundle, found *fetch.Fetched) int32 {
	if c := b.GetStatus().Checking; c != nil && c.Digest == found.Digest && c.Generation == b.GetGeneration() {
		return c.Begun
	}
	return 0
}

// writeCheck writes the phase of a check into the status.
func (p *Publisher) writeCheck(ctx context.Context, b policy.AnyPolicyBundle, found *fetch.Fetched, phase policy.PolicyCheckPhase, text string) error {
	c := &policy.PolicyCheck{Phase: phase, Digest: found.Digest, Generation: b.GetGeneration(), Begun: checksBegun(b, found), Message: message.Shorten(text), Time: metav1.NewTime(p.Clock())}
	if phase == policy.PolicyCheckRunning {
		c.Begun++
	}
	if err := p.WriteStatus(ctx, b, c); err != nil {
		return fmt.Errorf("writing that policy bundle %s is being checked: %w", keyOf(b), err)
	}
	b.GetStatus().Checking = c
	return nil
}

// refuseEndless is the refusal of a bundle whose check never ends; nil for others.
func refuseEndless(b policy.AnyPolicyBundle, found *fetch.Fetched) *refusal {
	n := checksBegun(b, found)
	if n < mostBegun {
		return nil
	}
	return &refusal{stage: policy.PolicyBundleTestsPassed, reason: policy.PolicyBundleCheckNeverEndedReason, errors: []string{fmt.Sprintf(
		"its check began %d times, and each time the manager ended before the check did; it is not begun again until the files or the spec change", n)}}
}

// writeCheck writes the check of a bundle and nothing else of its status.
func (r *Reconciler) writeCheck(ctx context.Context, b policy.AnyPolicyBundle, c *policy.PolicyCheck) error {
	before, after := emptyBundle(keyOf(b)), emptyBundle(keyOf(b))
	for _, o := range []policy.AnyPolicyBundle{before, after} {
		o.SetName(b.GetName())
		o.SetNamespace(b.GetNamespace())
		o.SetResourceVersion(b.GetResourceVersion())
		o.GetStatus().Checking = b.GetStatus().Checking.DeepCopy()
	}
	after.GetStatus().Checking = c
	return r.Client.Status().Patch(ctx, asObject(after), client.MergeFrom(asObject(before)))
}

// endCheck removes a check that failed from the status if the rest of the status is not written. A check that failed for lack of
// memory continues to wait: the queue tries it again.
func (r *Reconciler) endCheck(ctx context.Context, b policy.AnyPolicyBundle, failure error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearFor)
	defer cancel()
	var next *policy.PolicyCheck
	var none *gate.NoMemoryError
	if errors.As(failure, &none) {
		next = b.GetStatus().Checking.DeepCopy()
		next.Phase, next.Begun, next.Message = policy.PolicyCheckWaiting, next.Begun-1, message.Shorten(none.Error())
	}
	if err := client.IgnoreNotFound(r.writeCheck(ctx, b, next)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Telling that the check of a policy bundle has ended", "bundle", keyOf(b))
	}
}
