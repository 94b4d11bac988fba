// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"unsafe"

	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// Single is a Round of a workload that one decision explains. It explains no pods.
type Single struct {
	// Answer is the answer without the decision and its rule.
	Answer Answer
	// Record is the record of the decision; nil if there was none.
	Record *decision.Record
	// Engine made the decision.
	Engine *engine.Engine
	// Without are the names of facts to leave out, since they explain nothing.
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
	a.Basis = &whatif.Basis{Engine: s.Engine, Records: []decision.Record{*s.Record}}
	// Policies that changed since the decision would be reported with the wrong place. Policies of another
	// namespace do not matter here.
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
