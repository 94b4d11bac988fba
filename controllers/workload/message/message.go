// SPDX-License-Identifier: Apache-2.0

// Package message bounds the length of conditions, events and errors, however many objects they are about.
package message

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	agent "github.com/regatta-sh/regatta/nodeagent/message"
)

// MostBytes is the maximum length of a message: that of the message of an event of Kubernetes.
const MostBytes = agent.MostBytes

// mostNamed is how many names a message lists.
const mostNamed = 10

const ellipsis = "..."

// Shorten joins the lines of a text, and truncates it to MostBytes.
func Shorten(text string) string {
	if len(text) > 2*MostBytes { // the rest is not needed
		text = text[:2*MostBytes]
	}
	text = strings.ReplaceAll(text, "\n", "; ")
	if len(text) <= MostBytes {
		return text
	}
	return agent.Truncate(text[:MostBytes-len(ellipsis)]) + ellipsis
}

// ListNames lists the first of some names, and says how many more there are.
func ListNames(names []string) string {
	if len(names) <= mostNamed {
		return Shorten(strings.Join(names, ", "))
	}
	more := fmt.Sprintf(" and %d more", len(names)-mostNamed)
	list := Shorten(strings.Join(names[:mostNamed], ", "))
	return agent.Truncate(list[:min(len(list), MostBytes-len(more))]) + more // no character is split
}

// JoinErrors does the same as errors.Join, but the text has only the first errors. All of them can be unwrapped.
func JoinErrors(errs ...error) error {
	var all joined
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

type joined []error

// Error implements error.
func (j joined) Error() string {
	var out strings.Builder
	for i, err := range j {
		if i == mostNamed {
			fmt.Fprintf(&out, "\nand %d more errors", len(j)-i)
			break
		}
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(err.Error())
	}
	return out.String()
}

// Unwrap returns all errors.
func (j joined) Unwrap() []error { return j }

// NewRecorder is a recorder of events whose messages are bounded.
func NewRecorder(r record.EventRecorder) record.EventRecorder { return recorder{r} }

type recorder struct{ record.EventRecorder }

// Event implements record.EventRecorder.
func (r recorder) Event(o runtime.Object, kind, reason, message string) {
	r.EventRecorder.Event(o, kind, reason, Shorten(message))
}

// Eventf implements record.EventRecorder.
func (r recorder) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	r.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (r recorder) AnnotatedEventf(o runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	r.EventRecorder.AnnotatedEventf(o, annotations, kind, reason, "%s", Shorten(fmt.Sprintf(format, args...)))
}
