// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// RecordedEvents has the last message of each reason for which an event of an object was recorded, so
// that each message is recorded once. The zero value has none.
type RecordedEvents map[string]string

// RecordOnce records an event unless the last one of its reason has the same message.
func (r *RecordedEvents) RecordOnce(events record.EventRecorder, o runtime.Object, kind, reason, message string) {
	if (*r)[reason] == message {
		return
	}
	if *r == nil {
		*r = RecordedEvents{}
	}
	(*r)[reason] = message
	events.Event(o, kind, reason, message)
}

// ForgetReason forgets the last event of a reason, so that the next one is recorded whatever its
// message is.
func (r *RecordedEvents) ForgetReason(reason string) { delete(*r, reason) }
