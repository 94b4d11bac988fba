package policybundle

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// lookAgain is how often a bundle is looked at without a change of its own:
// another may be in its way, or needed by it, and a replica may lead by then
// and write what the leader before it has not written.
const lookAgain = 30 * time.Second

// told says whether the status is that of the newest files, and good: then they
// are kept already.
func told(b *policy.ClusterPolicyBundle) bool {
	c := meta.FindStatusCondition(b.Status.Conditions, policy.PolicyBundleReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == b.Generation
}

// report writes the status, and an event when the reason is another.
func (r *Reconciler) report(ctx context.Context, b *policy.ClusterPolicyBundle, refused *Refusal) error {
	before := b.DeepCopy()
	active := r.Library.Active(b.Name)
	s := &b.Status
	s.ObservedGeneration = b.Generation
	if s.ActiveRevision != active {
		s.ActiveRevision, s.LastActivationTime = active, nil
		if active != "" {
			now := metav1.Now()
			s.LastActivationTime = &now
		}
	}
	c := metav1.Condition{
		Type: policy.PolicyBundleReady, Status: metav1.ConditionTrue, ObservedGeneration: b.Generation,
		Reason: policy.PolicyBundleActivatedReason, Message: fmt.Sprintf(policy.PolicyBundleActivatedMessage, active),
	}
	s.Errors = nil
	if refused != nil {
		s.Errors = refused.Errors
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, refused.Reason, failed(refused, active)
	}
	old := meta.FindStatusCondition(s.Conditions, c.Type)
	news := old == nil || old.Reason != c.Reason || old.ObservedGeneration != c.ObservedGeneration
	meta.SetStatusCondition(&s.Conditions, c)
	if equality.Semantic.DeepEqual(before.Status, b.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, b, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing status of policy bundle %s: %w", b.Name, err)
	}
	if news {
		kind := corev1.EventTypeNormal
		if refused != nil {
			kind = corev1.EventTypeWarning
		}
		r.Events.Event(b, kind, c.Reason, c.Message)
	}
	return nil
}

// failed is the message of a bundle whose newest files are not enforced.
func failed(refused *Refusal, active string) string {
	first := "the reason is not known"
	if len(refused.Errors) > 0 {
		first = strings.TrimSuffix(refused.Errors[0], ".")
	}
	if more := len(refused.Errors) - 1; more > 0 {
		first += fmt.Sprintf(" (and %d more in status.errors)", more)
	}
	stays := policy.PolicyBundleNothingActiveMessage
	if active != "" {
		stays = fmt.Sprintf(policy.PolicyBundleStaysMessage, active)
	}
	return fmt.Sprintf(policy.PolicyBundleFailedMessage, first, stays)
}
