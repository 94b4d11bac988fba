// SPDX-License-Identifier: Apache-2.0

// Package condition reads and writes conditions of any status. The kinds of OpenKruise have several Go types of conditions, with the
// same fields. All controllers write the conditions of the objects that they own with it. The conditions of pods have several writers,
// each of which patches its own, so that they are written by package lifecycle and its like.
package condition

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

// FailedReconcile is the type of the condition that reports that a controller failed to reconcile an object. See package failure.
const FailedReconcile = "FailedReconcile"

// Condition is a condition, whatever its Go type in the API is.
type Condition struct {
	Type            string
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Change says which fields SetCondition changed. All fields of a new condition changed.
type Change struct {
	Status, Reason bool
	// Message is also true for another generation.
	Message bool
}

// IsNews reports whether more changed than the message. Most events are recorded only for news.
func (c Change) IsNews() bool { return c.Status || c.Reason }

// IsAny reports whether more changed than a time.
func (c Change) IsAny() bool { return c.Status || c.Reason || c.Message }

// SetCondition adds a condition to a status behind all others, or changes the one of its type where it is. The status is a pointer to a
// struct with the field Conditions, or a pointer to such a list; any other is left as it is. SetCondition bounds the message, and sets
// those of these fields that the Go type has: lastTransitionTime when the status changes, lastUpdateTime when the status or the reason
// does, lastProbeTime when the reason or the message does, and observedGeneration.
func SetCondition(status any, c Condition, generation int64, now metav1.Time) Change {
	all := listConditions(status)
	if !all.IsValid() {
		return Change{}
	}
	c.Message = message.Shorten(c.Message)
	i := indexOf(all, c.Type)
	added := i < 0
	if added {
		all.Set(reflect.Append(all, reflect.New(all.Type().Elem()).Elem()))
		i = all.Len() - 1
	}
	item := all.Index(i)
	if !item.FieldByName("Message").IsValid() { // the text of a ResourceDistribution's condition is its reason
		c.Reason, c.Message = c.Message, ""
	}
	item.FieldByName("Type").SetString(c.Type)
	turned := setString(item, "Status", string(c.Status)) || added
	renamed := setString(item, "Reason", c.Reason) || added
	reworded := setString(item, "Message", c.Message) || added
	setTimeIf(item, "LastTransitionTime", now, turned)
	setTimeIf(item, "LastUpdateTime", now, turned || renamed)
	setTimeIf(item, "LastProbeTime", now, renamed || reworded)
	observed := item.FieldByName("ObservedGeneration")
	seen := observed.IsValid() && observed.Int() != generation
	if seen {
		observed.SetInt(generation)
	}
	return Change{Status: turned, Reason: renamed, Message: reworded || seen}
}

// HasCondition reports whether a status has a condition of a type.
func HasCondition(status any, conditionType string) bool {
	_, has := FindCondition(status, conditionType)
	return has
}

// FindCondition returns the condition of a type.
func FindCondition(status any, conditionType string) (Condition, bool) {
	all := listConditions(status)
	if !all.IsValid() {
		return Condition{}, false
	}
	i := indexOf(all, conditionType)
	if i < 0 {
		return Condition{}, false
	}
	item := all.Index(i)
	out := Condition{Type: conditionType, Status: metav1.ConditionStatus(readString(item, "Status")), Reason: readString(item, "Reason"), Message: readString(item, "Message")}
	return out, true
}

// RemoveConditions removes the conditions of some types from a status, and reports whether there were any.
func RemoveConditions(status any, types ...string) bool {
	all := listConditions(status)
	if !all.IsValid() {
		return false
	}
	kept := reflect.Zero(all.Type())
	for i := range all.Len() {
		if !slices.Contains(types, all.Index(i).FieldByName("Type").String()) {
			kept = reflect.Append(kept, all.Index(i))
		}
	}
	removed := kept.Len() < all.Len()
	if removed {
		all.Set(kept)
	}
	return removed
}

// PutSummaryLast puts Reconciling, Stalled and Ready behind all other conditions. Scripts read the first conditions of OpenKruise by
// their place.
func PutSummaryLast(status any) {
	all := listConditions(status)
	if !all.IsValid() {
		return
	}
	for _, t := range []string{kruise.ConditionReconciling, kruise.ConditionStalled, kruise.ConditionReady} {
		if i := indexOf(all, t); i >= 0 && i < all.Len()-1 {
			moved := reflect.ValueOf(all.Index(i).Interface())
			RemoveConditions(status, t)
			all.Set(reflect.Append(all, moved))
		}
	}
}

// listConditions returns the field Conditions of a status, which can be set. It is not valid if the status has no list of conditions.
func listConditions(status any) reflect.Value {
	v := reflect.ValueOf(status)
	if v.Kind() != reflect.Pointer {
		return reflect.Value{}
	}
	all := v.Elem()
	if all.Kind() == reflect.Struct {
		all = all.FieldByName("Conditions")
	}
	if !all.IsValid() || all.Kind() != reflect.Slice || all.Type().Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return all
}

func indexOf(all reflect.Value, conditionType string) int {
	for i := range all.Len() {
		if all.Index(i).FieldByName("Type").String() == conditionType {
			return i
		}
	}
	return -1
}

// readString returns a field, "" if the Go type does not have it.
func readString(item reflect.Value, name string) string {
	if field := item.FieldByName(name); field.IsValid() {
		return field.String()
	}
	return ""
}

func setString(item reflect.Value, name, to string) (changed bool) {
	field := item.FieldByName(name)
	if !field.IsValid() || field.String() == to {
		return false
	}
	field.SetString(to)
	return true
}

func setTimeIf(item reflect.Value, name string, to metav1.Time, yes bool) {
	if field := item.FieldByName(name); yes && field.IsValid() {
		field.Set(reflect.ValueOf(to))
	}
}
