// SPDX-License-Identifier: Apache-2.0

// Package decision is the contract between the code that acts and the policies
// that decide: the decision points, the input of each, what each may answer,
// and what happens when there is no answer.
//
// A point is pure. It sees the facts it is given and nothing else: no clock, no
// network, no cluster. Time is a fact. Facts are scalars and short lists; they
// are built once and never changed afterwards, so a record may keep them.
package decision

import (
	"strings"
	"time"
)

// Name names a decision point as "domain/point", e.g. "rollout/plan".
type Name string

// Point is a decision point: a name, the types of its question and its answer,
// and what is answered when no policy could.
//
// The entrypoint of the built-in policy is data.<domain>.<point>; a platform
// bundle may replace it with data.override.<domain>.<point>.
type Point[In, Out any] struct {
	Name Name
	// Budget is the longest an evaluation may take while the process runs; time in which
	// a CPU limit stops the process does not count. When it is over, the fallback is
	// answered and the evaluation is given up.
	Budget time.Duration
	// MaxResult bounds the answer, in JSON nodes (scalars plus containers).
	// Zero means DefaultMaxResult.
	MaxResult int
	// MaxBytes bounds the texts of the answer together, in bytes: strings, names of
	// fields, and numbers that are kept as text. Zero means DefaultMaxBytes. No
	// single one may have more than MaxText, whatever the point.
	MaxBytes int
	// Fallback answers when the policy is undefined, fails or takes too long.
	// It must be safe: start nothing new, take nothing away.
	Fallback func(In) Out
	// StrictFallback answers instead of Fallback where rules of users take part in
	// the point for the subject: it is never looser than any answer that they could
	// have given. It may be nil: Fallback is as strict then.
	StrictFallback func(In) Out
	// StrictWhere is a rule of the built-in policies: StrictFallback answers only where
	// rules of users take part in that one, or a bundle replaces the point. It is the
	// point itself if it is empty.
	StrictWhere Name
	// Exemption is a rule of the built-in policies whose answers are of the type Out. It is
	// undefined unless the platform exempts what is asked about. Where the policies did
	// not decide, those of the platform alone are asked for it before a fallback answers.
	Exemption Name
	// WithBuiltin makes an answer of Fallback stricter by what the built-in policies alone
	// answer, where rules of users took part and failed. It may be nil.
	WithBuiltin func(in In, fallback, builtin Out) Out
	// Check refuses an answer that has the right type but makes no sense, such
	// as a list of another length than the question. It may be nil.
	Check func(In, Out) error
	// Lean says which way one answer leans from another one, for two that differ.
	// It may be nil: every difference is then Changed.
	Lean func(in In, then, now Out) Strictness
}

// FallbackAnswer answers in place of policies that did not. Strict is true where rules of
// users take part.
func (p Point[In, Out]) FallbackAnswer(in In, strict bool) Out {
	if strict && p.StrictFallback != nil {
		return p.StrictFallback(in)
	}
	return p.Fallback(in)
}

// The rule and the reason of the holds and denials of fallbacks.
const (
	RuleEngine       = "engine"
	ReasonNoDecision = "NoDecision"
)

// DefaultMaxResult is the number of JSON nodes an answer may have where the
// point sets no bound of its own.
const DefaultMaxResult = 1 << 20

// Bounds of the texts of an answer. They are a point's own only where there is a
// text for each of many pods; others have a few reasons, of which each ends in
// a condition (of 32 KiB at most, see metav1.Condition), an event or a reply.
const (
	// DefaultMaxBytes is what all texts may have where the point sets no bound of
	// its own.
	DefaultMaxBytes = 256 << 10
	// MaxText is what one text may have.
	MaxText = 8 << 10
)

// TruncateText is a text of at most so many bytes, which ends with dots if it was longer.
func TruncateText(text string, bytes int) string {
	const dots = "..."
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-len(dots)], "") + dots
}

// Outcome says how an answer came about. The four are never mixed: a policy
// that is undefined has not said "no".
type Outcome string

const (
	// Decided means the policy answered.
	Decided Outcome = "Decided"
	// Undefined means the policy has no answer for this input. It is an error:
	// entrypoints have a default.
	Undefined Outcome = "Undefined"
	// Failed means the evaluation failed, or the answer was not of the point's
	// type, too large, or refused by the point's check.
	Failed Outcome = "Error"
	// TimedOut means the budget was used up.
	TimedOut Outcome = "Timeout"
)

// Subject is what a decision is about.
type Subject struct {
	// Group is the API group of the kind. It is empty for kinds of the core group, for what
	// is no object, and in records of before there was this field.
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// Record is one decision as it was made: enough to explain it and to make it
// again. Input and Output are the values that were exchanged, not copies; they
// are not changed afterwards. Package record has the format it is written in.
type Record struct {
	// ID counts the decisions of a process, from 1.
	ID uint64
	// Origin names the process in records that were read; it is empty in those
	// of this one.
	Origin   string
	Time     time.Time
	Point    Name
	Subject  Subject
	Outcome  Outcome
	Revision string   // of the active bundles together
	Bundles  []string // as name@revision
	Rules    []string // ids of the labelled rules that took part
	Input    any
	Output   any
	Error    string
	Duration time.Duration
	// Masked points to what was hidden before the record was written, as JSON
	// pointers from the record. A decision that depends on it cannot be made again.
	Masked []string
	// Shadow names the bundle in shadow whose decision it is, which was not acted
	// on; it is empty in all others.
	Shadow string
}

// SplitBundleID splits what a record says of a bundle, NAME@REVISION. The revision is empty if it says none.
func SplitBundleID(id string) (name, revision string) {
	if i := strings.LastIndexByte(id, '@'); i >= 0 {
		return id[:i], id[i+1:]
	}
	return id, ""
}

// Hold is a policy's wish that nothing new be disrupted, and why.
type Hold struct {
	// Rule is the id of the rule that holds. The engine fills it with the name
	// of the package where the policy gives none.
	Rule string `json:"rule,omitempty"`
	// Reason is CamelCase, for machines. Required.
	Reason string `json:"reason"`
	// Message is a sentence, for people. Required.
	Message string `json:"message"`
	// Where limits the hold to the pods of these groups, e.g. {"zone": "b"}.
	// Empty means the whole workload.
	Where map[string]string `json:"where,omitempty"`
	// Pod limits the hold to the pods of this name: one pod where the workload is in one
	// namespace, and one in each namespace where it is cluster-scoped.
	Pod string `json:"pod,omitempty"`
	// Namespace limits the hold to pods in this namespace.
	Namespace string `json:"namespace,omitempty"`
	// Until is when the hold may change by the passing of time alone, as RFC
	// 3339. The workload is decided again then.
	Until string `json:"until,omitempty"`
	// Run says what the hold does to runs of schedules: Wait, or Skip to leave
	// them out. Empty means that it is not about runs.
	Run string `json:"run,omitempty"`
	// NewPods says which revision pods get that are created while the hold of a whole workload
	// is in force: Current, which is the default, or Update to have them as the partition
	// says. Pods beyond the replicas are not created in either case.
	NewPods string `json:"newPods,omitempty"`
}

// Values of Hold.NewPods.
const (
	NewPodsCurrent = "Current"
	NewPodsUpdate  = "Update"
)

// RuleWalk is the rule of a hold that comes from walking the candidates, not
// from a policy: the pod waits for others, which is how a rollout goes.
const RuleWalk = "walk"

// IsFromWalk reports whether a hold comes from the walk.
func (h Hold) IsFromWalk() bool { return h.Rule == RuleWalk }

// IsWholeWorkload reports whether a hold is of the whole workload, and not of some of its pods.
func (h Hold) IsWholeWorkload() bool { return len(h.Where) == 0 && h.Pod == "" && h.Namespace == "" }

// NamesPod reports whether a pod has the name and the namespace that a hold is limited to. It
// is not limited by what it leaves empty. The groups of the pod do not count.
func (h Hold) NamesPod(namespace, name string) bool {
	return (h.Pod == "" || h.Pod == name) && (h.Namespace == "" || h.Namespace == namespace)
}

// OfPod is a hold limited to one pod.
func (h Hold) OfPod(namespace, name string) Hold {
	h.Namespace, h.Pod = namespace, name
	return h
}
