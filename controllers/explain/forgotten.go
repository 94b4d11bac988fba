// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine/decision"
)

// storedBytes is how much memory a workload takes besides its round: for its names, and its entries in the maps
// and the list.
const storedBytes = 1 << 10

// droppedRound replaces a round that takes too much memory to be kept, and says so.
type droppedRound struct {
	subject decision.Subject
	at      time.Time
	why     string
	placer  bool
}

// forgetDecisions replaces a round by one that only says that its decisions were forgotten.
func (s *Store) forgetDecisions(r *stored) {
	s.removeRound(r)
	f := &droppedRound{subject: r.subject, at: r.at}
	_, f.placer = r.round.(RoundWithPlacements)
	if r.bytes > s.max {
		f.why = fmt.Sprintf("an explanation of it takes %d KiB of memory, and those of all workloads together may take %d KiB.", r.bytes>>10, s.max>>10)
	} else {
		f.why = fmt.Sprintf("explanations of all workloads together may take %d KiB of memory. It is known again when it is decided about again, such as after its next change.", s.max>>10)
	}
	r.round = f
}

// ownsPods reports whether a pod of that name may be one of the workload.
func (f *droppedRound) ownsPods(pod string) bool {
	return strings.HasPrefix(pod, f.subject.Name+"-") && !f.placer
}

// answerForgotten is the answer about a pod that may be one of the workload.
func (f *droppedRound) answerForgotten(namespace, pod string) Answer {
	a := f.ExplainWorkload()
	a.Subject = decision.Subject{Kind: "Pod", Namespace: namespace, Name: pod}
	a.Message = message.Shorten(fmt.Sprintf("What %s %s decided is not remembered: %s", f.subject.Kind, f.subject.Name, f.why))
	return a
}

// ExplainWorkload implements Round.
func (f *droppedRound) ExplainWorkload() Answer {
	return Answer{
		Subject: f.subject, Workload: f.subject, Decided: f.at, Verdict: Forgotten, Reason: "NotRemembered",
		Message: "What was decided about it is not remembered: " + f.why,
	}
}

// ExplainPod implements Round: nothing is known of pods.
func (f *droppedRound) ExplainPod(string, string) (Answer, bool) { return Answer{}, false }

// ExplainPods implements Round.
func (f *droppedRound) ExplainPods() []Answer { return nil }

// CountBytes implements Round.
func (f *droppedRound) CountBytes() int { return 0 }
