// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/test/faults/history"
	"github.com/regatta-sh/regatta/test/faults/versions"
)

// Recorder notes every version of pods and budgets.
type Recorder struct {
	*versions.Recorder
	events []history.Event
}

// Record starts with the pods and budgets that exist.
func Record(ctx context.Context, c client.WithWatch) (_ *Recorder, err error) {
	r := &Recorder{}
	r.Recorder, err = versions.Record(ctx, c, r.note, Namespace, &corev1.PodList{}, &policy.PodUnavailableBudgetList{})
	return r, err
}

// Events are those until now. The error says that some may be missing.
func (r *Recorder) Events() ([]history.Event, error) {
	err := r.End()
	return r.events, err
}

func (r *Recorder) note(v versions.Version) {
	out := history.Event{Revision: v.Revision}
	switch o := v.Object.(type) {
	case *corev1.Pod:
		out.Budget, out.Pod = o.Labels[BudgetLabel], pod(o, v.Gone)
	case *policy.PodUnavailableBudget:
		out.Budget, out.Status = o.Name, status(o)
	}
	r.events = append(r.events, out)
}

func pod(p *corev1.Pod, gone bool) *history.Pod {
	ready := false
	for _, c := range p.Status.Conditions {
		ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	labelled := false
	for key := range p.Labels {
		labelled = labelled || strings.HasPrefix(key, policyv1alpha1.UnavailablePodLabelPrefix)
	}
	return &history.Pod{
		Why:  fmt.Sprintf("ready=%t labelled=%t terminating=%t", ready, labelled, p.DeletionTimestamp != nil),
		Name: p.Name, UID: string(p.UID), Created: p.CreationTimestamp.Time, Gone: gone,
		Available: ready && !labelled && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning,
		Spec:      p.Spec.Containers[0].Image + " " + p.Spec.Containers[0].Resources.Requests.Cpu().String(),
	}
}

func status(b *policy.PodUnavailableBudget) *history.Status {
	out := &history.Status{Allowed: int(b.Status.UnavailableAllowed), Current: int(b.Status.CurrentAvailable), Recorded: map[string]time.Time{}}
	for _, list := range []map[string]metav1.Time{b.Status.DisruptedPods, b.Status.UnavailablePods} {
		for name, at := range list {
			if at.After(out.Recorded[name]) {
				out.Recorded[name] = at.Time
			}
		}
	}
	return out
}
