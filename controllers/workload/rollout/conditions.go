// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// BuildConditions returns the conditions of a status after a round, for kinds with WorkloadConditions: whether
// a policy holds the update, with an event for each new reason, and which phases failed. failed returns
// the type of the condition of a phase. was are the conditions before. BuildConditions keeps those that package kstatus writes, and
// removes all others.
func (r *Round) BuildConditions(f *Facts, res Result, was []kruise.WorkloadCondition, failed func(phase string) kruise.WorkloadConditionType) []kruise.WorkloadCondition {
	out := slices.DeleteFunc(slices.Clone(was), func(c kruise.WorkloadCondition) bool { return !kstatus.IsOwned(string(c.Type)) })
	old := FindCondition(was, kruise.UpdateHeld)
	if old != nil {
		out = append(out, *old)
	}
	if c := res.HoldCondition(old != nil && old.Status == corev1.ConditionTrue); c != nil {
		changed := false
		before := ""
		if old != nil {
			before = old.Reason
		}
		if out, changed = WithCondition(out, *c, was, f.Now); changed && !r.isToldAsScaling(res, *c, before) {
			res.ReportHold(r, *c)
		}
	}
	for _, e := range res.FailedPhases() {
		t := string(failed(e.Phase))
		out, _ = WithCondition(out, condition.Condition{Type: t, Status: metav1.ConditionTrue, Reason: t, Message: e.Error()}, was, f.Now)
	}
	return out
}

// FindCondition returns the condition of a type, nil if there is none.
func FindCondition(all []kruise.WorkloadCondition, t string) *kruise.WorkloadCondition {
	for i := range all {
		if string(all[i].Type) == t {
			return &all[i]
		}
	}
	return nil
}

// WithCondition adds or replaces a condition, behind all others. If its status is the same as before, it keeps the time of
// its last transition. WithCondition reports whether the status or the reason changed.
func WithCondition(all []kruise.WorkloadCondition, c condition.Condition, was []kruise.WorkloadCondition, now time.Time) ([]kruise.WorkloadCondition, bool) {
	out := slices.DeleteFunc(slices.Clone(all), func(o kruise.WorkloadCondition) bool { return string(o.Type) == c.Type })
	if old := FindCondition(was, c.Type); old != nil {
		out = append(out, *old)
	}
	changed := condition.SetCondition(&out, c, 0, metav1.NewTime(now)).IsNews()
	return out, changed
}
