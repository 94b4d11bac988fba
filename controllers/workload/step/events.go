// SPDX-License-Identifier: Apache-2.0

package step

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// Recorded has the last message of each reason for which an event of an object was recorded, so
// that each message is recorded once. The zero value has none.
type Recorded map[string]string

// Once records an event unless the last one of its reason has the same message.
func (r *Recorded) Once(events record.EventRecorder, o runtime.Object, kind, reason, message string) {
	if (*r)[reason] == message {
		return
	}
	if *r == nil {
		*r = Recorded{}
	}
	(*r)[reason] = message
	events.Event(o, kind, reason, message)
}

// Settled forgets the last event of a reason, so that the next one is recorded whatever its
// message is.
func (r *Recorded) Settled(reason string) { delete(*r, reason) }
