// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/engine/decision"
)

// summarizeTexts shortens a list for a message.
func summarizeTexts(texts []string) string {
	switch len(texts) {
	case 0:
		return ""
	case 1:
		return texts[0]
	}
	return fmt.Sprintf("%s (and %d more)", texts[0], len(texts)-1)
}

// reportedMessage is a message, and when the last event of its reason was recorded. The text is empty when the
// problem is over.
type reportedMessage struct {
	text string
	at   time.Time
}

// longestCause is how many bytes of each error a message has, so that it names each object that cannot be written.
const longestCause = 300

// whyNotWritten returns the message about errors of writing the configurations, empty if there was none. known is false if there were only
// conflicts: these are retried at once, and do not tell whether earlier errors persist.
func whyNotWritten(err error) (message string, known bool) {
	if err == nil {
		return "", true
	}
	causes := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		causes = joined.Unwrap()
	}
	var texts []string
	for _, cause := range causes {
		if !apierrors.IsConflict(cause) {
			texts = append(texts, decision.TruncateText(cause.Error(), longestCause))
		}
	}
	if len(texts) == 0 {
		return "", false
	}
	return "What is protected cannot be written, so that it stays as it was: " + strings.Join(texts, "; "), true
}

// numbers may differ each time that the same write fails, such as the port of a connection.
var numbers = regexp.MustCompile(`[0-9]+`)

// isSameReport reports whether two messages of a reason report the same problem.
func isSameReport(reason, before, now string) bool {
	if reason != NotWrittenReason && reason != UndecidedReason { // these messages name what is left out, or what others have changed
		return before == now
	}
	return numbers.ReplaceAllLiteralString(before, "0") == numbers.ReplaceAllLiteralString(now, "0")
}

// reportAgain is how soon a write error is reported again: an API server keeps events for an hour. Changes by other clients are not
// reported again, since they show in the configurations.
const reportAgain = 30 * time.Minute

// reportOnce reports a message once, and logs when it no longer holds. A reason whose messages change all the time makes one event
// every lookAgain: the controller compares the configurations by then, and reports the current state.
func (w *Writer) reportOnce(on client.Object, reason, message, prefix string) {
	if w.reported == nil {
		w.reported = map[string]reportedMessage{}
	}
	key := fmt.Sprintf("%T %s", on, reason)
	before, now := w.reported[key], w.Now()
	switch {
	case isSameReport(reason, before.text, message) && (message == "" || reason != NotWrittenReason || now.Sub(before.at) < reportAgain):
		return
	case message == "":
		w.reported[key] = reportedMessage{"", before.at}
		ctrl.Log.Info("This is over", "reason", reason)
		return
	case now.Sub(before.at) < lookAgain:
		return
	}
	w.reported[key] = reportedMessage{message, now}
	ctrl.Log.Error(nil, prefix+message, "reason", reason)
	w.Events.Event(on, corev1.EventTypeWarning, reason, prefix+message)
}
