// SPDX-License-Identifier: Apache-2.0

// Package explain answers why: what was decided about a workload and each of
// its pods in the last round, by which rule, and on which facts. Answers come
// from memory; nothing is written to the cluster for them.
package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/nearest"
)

// Verdict is what happens to a pod, or to a workload.
type Verdict string

// The verdicts.
const (
	// UpToDate: it is where it should be, and available.
	UpToDate Verdict = "UpToDate"
	// Updating: it is on its way and not available yet.
	Updating Verdict = "Updating"
	// Moved: its update, or its recreation, was started in this round.
	Moved Verdict = "Moved"
	// Held: a policy or the strategy keeps it from being updated.
	Held Verdict = "Held"
	// Waiting: it waits for other pods, as a rollout goes, or a schedule for its next time.
	Waiting Verdict = "Waiting"
	// Hooked: a lifecycle hook keeps it in its state.
	Hooked Verdict = "Hooked"
	// Deleting: it is to be deleted.
	Deleting Verdict = "Deleting"
	// Placed: it is in a subset, or its subsets have their pods.
	Placed Verdict = "Placed"
	// Running: it runs pods, or starts jobs, as it should.
	Running Verdict = "Running"
	// Paused: its spec keeps it from going on.
	Paused Verdict = "Paused"
	// Ended: nothing is decided about it any more.
	Ended Verdict = "Ended"
	// Forgotten: it is not remembered what was decided.
	Forgotten Verdict = "Forgotten"
	// Lacking: it was not given what it should have been when it was created.
	Lacking Verdict = "Lacking"

	// Refused: a request was refused.
	Refused Verdict = "Refused"
	// Exempted: a rule refused the request, but a policy exempted it, for
	// example because an authorized user broke the glass.
	Exempted Verdict = "Exempted"
)

// DisplayText is the verdict for people.
func (v Verdict) DisplayText() string {
	if v == UpToDate {
		return "up to date"
	}
	return strings.ToLower(string(v))
}

// PodVerdicts are all that pods of a workload have, the most troublesome first.
func PodVerdicts() []Verdict {
	return []Verdict{Held, Hooked, Deleting, Waiting, Updating, Moved, UpToDate}
}

// Fact is one fact that a decision was made on.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Answer says why.
type Answer struct {
	Subject  decision.Subject `json:"subject"`
	Workload decision.Subject `json:"workload"`
	Verdict  Verdict          `json:"verdict"`
	Reason   string           `json:"reason,omitempty"`
	Message  string           `json:"message"`
	// Rule is the id of the rule that decided; Title is what it says of itself,
	// Bundle where it is from, and Place is file:row:col in there.
	Rule   string `json:"rule,omitempty"`
	Title  string `json:"title,omitempty"`
	Bundle string `json:"bundle,omitempty"`
	Place  string `json:"place,omitempty"`
	// From and To are the revisions a pod is at and is to have.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Until is when the passing of time alone may change the answer.
	Until string `json:"until,omitempty"`
	// Policies is the revision of the policies that decide about the workload, Bundles what
	// it is made of.
	Policies string   `json:"policies"`
	Bundles  []string `json:"bundles,omitempty"`
	// Facts are those that mattered: what the rule looks at, then the counts
	// that bound any rollout.
	Facts []Fact `json:"facts,omitempty"`
	// Others are more holds of the same subject.
	Others []decision.Hold `json:"others,omitempty"`
	// Rules are the ids of all rules that took part in the decisions.
	Rules []string `json:"rules,omitempty"`
	// Outcome is how the plan came about; anything but Decided is a fallback.
	Outcome decision.Outcome `json:"outcome,omitempty"`
	Error   string           `json:"error,omitempty"`
	// Decided is when.
	Decided time.Time `json:"decided"`
	// Pods counts the workload's pods by verdict, Why by what keeps them where
	// they are, and Groups by where they run: dimension ("zone"), value.
	Pods   map[Verdict]int                     `json:"pods,omitempty"`
	Why    []ReasonCount                       `json:"why,omitempty"`
	Groups map[string]map[string]rollout.Group `json:"groups,omitempty"`
	// Nodes are those whose pods are not up to date, of a kind that has one pod on each; the
	// pods that move come first. There are at most MostNodes of them.
	Nodes []Node `json:"nodes,omitempty"`
	// Subsets are those of a UnitedDeployment, and what each gets.
	Subsets []Subset `json:"subsets,omitempty"`
	// Request is what was refused, or let through by way of exception.
	Request *Request `json:"request,omitempty"`
	// Nearest is what would have changed the answer; nil if the caller did not ask for it.
	Nearest *nearest.Result `json:"nearest,omitempty"`
	// Near works it out, which may take as long as the context lasts. It is nil
	// where there is nothing to work out, and never told.
	Near func(context.Context) *nearest.Result `json:"-"`
	// NearBytes is what Near keeps in memory: the question, which has the object of a request.
	NearBytes int `json:"-"`
	// Replica is the manager that answered.
	Replica string `json:"replica,omitempty"`
}

// MostNodes bounds the nodes of an Answer.
const MostNodes = 20

// Node is how it stands with the pod of a node.
type Node struct {
	Name    string  `json:"name"`
	Pod     string  `json:"pod"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Rule    string  `json:"rule,omitempty"`
}

// DisplayText are how it stands with a node, for people.
func (n Node) DisplayText() string {
	return fmt.Sprintf("%s: %s%s", n.Verdict.DisplayText(), n.Reason, ruleSuffix(n.Rule))
}

// Subset is what a subset gets, and why.
type Subset struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
	Ready    int    `json:"ready"`
	Rule     string `json:"rule,omitempty"`
	Message  string `json:"message"`
}

// Request is a request for admission that an answer is about.
type Request struct {
	UID       string `json:"uid"`
	Operation string `json:"operation"`
	DryRun    bool   `json:"dryRun,omitempty"`
	User      string `json:"user"`
	// Group, Version and Resource are those of the object.
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

// ReasonCount counts pods with one reason. Those that are up to date have none.
type ReasonCount struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Rule    string  `json:"rule,omitempty"`
	// Message and Pod are those of the first of them.
	Message string `json:"message"`
	Pod     string `json:"pod"`
	Pods    int    `json:"pods"`
}

// DisplayText are how many of them there are, and why, for people.
func (t ReasonCount) DisplayText() string {
	return fmt.Sprintf("%d %s: %s%s", t.Pods, t.Verdict.DisplayText(), t.Reason, ruleSuffix(t.Rule))
}

// ruleSuffix names a rule of a policy behind a reason.
func ruleSuffix(rule string) string {
	if rule == "" || rule == decision.RuleWalk {
		return ""
	}
	return ", rule " + rule
}

// Reply is what answers a Question: the answer, and for a workload that was asked
// about with its pods, theirs.
type Reply struct {
	// TypeMeta and Metadata make an object of the API of it.
	metav1.TypeMeta `json:",inline"`
	Metadata        *ReplyMetadata `json:"metadata,omitempty"`

	Answer Answer   `json:"answer"`
	Pods   []Answer `json:"pods,omitempty"`
	// Placed says why a pod is in its subset, besides the answer.
	Placed *Answer `json:"placed,omitempty"`
	// Sidecars say why the containers of SidecarSets in a pod were or were not updated, besides the
	// answer.
	Sidecars []Answer `json:"sidecars,omitempty"`
	// Lacks says what a pod should have been given and was not, besides the answer.
	Lacks []Answer `json:"lacks,omitempty"`
	// Refusals are requests about the subject that were refused lately, the latest
	// first, besides the answer.
	Refusals []Answer `json:"refusals,omitempty"`
}

// ReplyMetadata names what was asked about.
type ReplyMetadata struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Round is what one reconcile decided about a workload. It must not change once
// it is stored.
type Round interface {
	// ExplainWorkload explains the workload.
	ExplainWorkload() Answer
	// ExplainPod explains one of its pods, false if it has none of that name in the namespace.
	ExplainPod(namespace, name string) (Answer, bool)
	// ExplainPods explains all of them in short, in the order they are taken: without
	// facts, and without what is the same for all.
	ExplainPods() []Answer
	// Bytes is about what the round keeps in memory, besides objects that caches have too. Answering does not make it more.
	CountBytes() int
}

// RoundWithMissingPods is a Round that knows which pods are not of its workload, and should be.
type RoundWithMissingPods interface {
	// ExplainMissing explains why a pod was not given what it should have been, false if it was.
	ExplainMissing(namespace, pod string) (Answer, bool)
}

// RoundWithPlacements is a Round that knows why pods are in their subsets.
type RoundWithPlacements interface {
	// ExplainPlacement explains the place of a pod, false if it is in no subset.
	ExplainPlacement(pod string) (Answer, bool)
}
