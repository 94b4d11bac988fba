// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// Log is the protection log: a line of JSON for each refusal and each exception
// (DP-02). A nil Log writes nothing.
type Log struct {
	mu  sync.Mutex
	out *json.Encoder
}

// NewLog makes a Log that writes to out.
func NewLog(out io.Writer) *Log { return &Log{out: json.NewEncoder(out)} }

// line keeps the field names of earlier releases; UserAgent is the name of the user.
type line struct {
	Event, Kind, Namespace, Name, UserAgent string
	Reason                                  string `json:",omitempty"`
}

// writeEntry writes a line. A full disk must not affect decisions, so a line that cannot be written is
// lost.
func (l *Log) writeEntry(a *Asked, event, reason string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.out.Encode(line{event, a.Object.Kind, a.Object.Namespace, a.Object.Name, a.Request.User.Name, reason})
}

// eventName is the name of the event in the log, by the point that decided.
func eventName(point decision.Name) string {
	if point == points.BudgetPoint().Name {
		return "PodUnavailableBudget"
	}
	return "DeletionProtection"
}
