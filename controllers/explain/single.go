// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"unsafe"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// Single is a Round of a workload that is explained by one decision, and whose pods, if it has
// any, are not.
type Single struct {
	// Answer is what there is to say but for the decision and its rule.
	Answer Answer
	// Record is of the decision; nil if there was none.
	Record *decision.Record
	// Engine made it.
	Engine *engine.Engine
	// Without are facts that say nothing, by their names.
	Without []string
}

// ExplainWorkload implements Round.
func (s *Single) ExplainWorkload() Answer {
	a := s.Answer
	a.Workload = a.Subject
	if s.Record == nil {
		a.Policies = s.Engine.ActiveSnapshot().RevisionFor(a.Subject)
		return a
	}
	a.Policies, a.Bundles, a.Rules, a.Outcome, a.Error = s.Record.Revision, s.Record.Bundles, s.Record.Rules, s.Record.Outcome, s.Record.Error
	// Policies that changed since would be reported with the wrong place. Those of another
	// namespace decide nothing here.
	if s.Engine.ActiveSnapshot().RevisionFor(s.Record.Subject) != s.Record.Revision {
		return a
	}
	for _, reason := range record.ExplainDecision(s.Engine, *s.Record).Reasons {
		if reason.Rule == a.Rule && reason.Reason == a.Reason {
			a.Title, a.Bundle, a.Place, a.Facts = reason.Title, reason.Bundle, reason.Place, CollectFacts(reason.Facts, s.Without...)
			break
		}
	}
	return a
}

// ExplainPod implements Round.
func (s *Single) ExplainPod(string, string) (Answer, bool) { return Answer{}, false }

// ExplainPods implements Round.
func (s *Single) ExplainPods() []Answer { return nil }

// CountBytes implements Round.
func (s *Single) CountBytes() int {
	a := &s.Answer
	n := int(unsafe.Sizeof(*s)) + len(a.Reason) + len(a.Message) + len(a.Rule) + len(a.Until)
	if s.Record != nil {
		n += record.MemorySize(*s.Record)
	}
	return n
}
