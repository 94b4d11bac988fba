package policybundle

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// leadCheck is how often a replica that does not lead looks whether it does, to
// write what the leader before it may not have written.
const leadCheck = 30 * time.Second

// report writes the status, and an event when the reason is another.
func (r *Reconciler) report(ctx context.Context, b *policy.ClusterPolicyBundle, refused *Refusal) error {
	before := b.DeepCopy()
	active := r.Library.Active(b.Name)
	s := &b.Status
	s.ObservedGeneration = b.Generation
	if s.ActiveRevision != active {
		now := metav1.Now()
		s.ActiveRevision, s.LastActivationTime = active, &now
	}
	c := metav1.Condition{
		Type: policy.PolicyBundleReady, Status: metav1.ConditionTrue, ObservedGeneration: b.Generation,
		Reason: policy.PolicyBundleActivatedReason, Message: fmt.Sprintf(policy.PolicyBundleActivatedMessage, active),
	}
	s.Errors = nil
	if refused != nil {
		s.Errors = refused.Errors
		first := "none is told"
		if len(refused.Errors) > 0 {
			first = refused.Errors[0]
		}
		stays := active
		if stays == "" {
			stays = "(none)"
		}
		c.Status, c.Reason = metav1.ConditionFalse, refused.Reason
		c.Message = fmt.Sprintf(policy.PolicyBundleFailedMessage, len(refused.Errors), first, stays)
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
