// SPDX-License-Identifier: Apache-2.0

// Package explain answers what was decided about a workload and each of its pods in the last round, by
// which rule, and on which facts. Answers come from memory; nothing is written to the cluster for
// them.
package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/nearest"
)

// Verdict is what happens to a pod, or to a workload.
type Verdict string

// The verdicts.
const (
	// UpToDate means that it is at the target revision, and available.
	UpToDate Verdict = "UpToDate"
	// Updating means that its update has begun, and it is not available yet.
	Updating Verdict = "Updating"
	// Moved means that its update, or its recreation, was started in this round.
	Moved Verdict = "Moved"
	// Held means that a policy or the strategy prevents its update.
	Held Verdict = "Held"
	// Waiting means that it waits for other pods in the course of a rollout, or a schedule for its next run.
	Waiting Verdict = "Waiting"
	// Hooked means that a lifecycle hook keeps it in its state.
	Hooked Verdict = "Hooked"
	// Deleting means that it is to be deleted.
	Deleting Verdict = "Deleting"
	// Placed means that it is in a subset, or that its subsets have their pods.
	Placed Verdict = "Placed"
	// Running means that it runs pods, or starts jobs, as specified.
	Running Verdict = "Running"
	// Paused means that its spec pauses it.
	Paused Verdict = "Paused"
	// Ended means that nothing is decided about it any more.
	Ended Verdict = "Ended"
	// Forgotten means that the manager does not remember what was decided.
	Forgotten Verdict = "Forgotten"
	// Lacking means that it was created without something that it should have been given.
	Lacking Verdict = "Lacking"

	// Refused means that a request was refused.
	Refused Verdict = "Refused"
	// Exempted means that a rule refused the request, but a policy exempted it, for example because an
	// authorized user overrode the rule in an emergency.
	Exempted Verdict = "Exempted"
)

// DisplayText is the verdict as text for users.
func (v Verdict) DisplayText() string {
	if v == UpToDate {
		return "up to date"
	}
	return strings.ToLower(string(v))
}

// PodVerdicts are the verdicts that pods of a workload may have, the most serious first.
func PodVerdicts() []Verdict {
	return []Verdict{Held, Hooked, Deleting, Waiting, Updating, Moved, UpToDate}
}

// Fact is one fact that a decision was made on.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Answer explains a decision.
type Answer struct {
	Subject  decision.Subject `json:"subject"`
	Workload decision.Subject `json:"workload"`
	Verdict  Verdict          `json:"verdict"`
	Reason   string           `json:"reason,omitempty"`
	Message  string           `json:"message"`
	// Rule is the id of the rule that decided; Title is the title in its metadata, Bundle its bundle, and
	// Place is file:row:col in the bundle.
	Rule   string `json:"rule,omitempty"`
	Title  string `json:"title,omitempty"`
	Bundle string `json:"bundle,omitempty"`
	Place  string `json:"place,omitempty"`
	// From and To are the revisions that a pod has and is to have.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Until is when the passing of time alone may change the answer.
	Until string `json:"until,omitempty"`
	// Policies is the revision of the policies that decide about the workload, Bundles the bundles in it.
	Policies string   `json:"policies"`
	Bundles  []string `json:"bundles,omitempty"`
	// Facts are the facts that mattered: those that the rule reads, then the counts that limit any
	// rollout.
	Facts []Fact `json:"facts,omitempty"`
	// Others are more holds of the same subject.
	Others []decision.Hold `json:"others,omitempty"`
	// Rules are the ids of all rules that took part in the decisions.
	Rules []string `json:"rules,omitempty"`
	// Outcome is the outcome of the decision about the plan; anything but Decided is a fallback.
	Outcome decision.Outcome `json:"outcome,omitempty"`
	Error   string           `json:"error,omitempty"`
	// Decided is when the decision was made.
	Decided time.Time `json:"decided"`
	// Pods counts the workload's pods by verdict, Why by the reason of the verdict, and Groups by where
	// they run: dimension ("zone"), value.
	Pods   map[Verdict]int                     `json:"pods,omitempty"`
	Why    []ReasonCount                       `json:"why,omitempty"`
	Groups map[string]map[string]rollout.Group `json:"groups,omitempty"`
	// Nodes are the nodes whose pods are not up to date, for a kind that has one pod on each node. Nodes
	// whose pods move come first. There are at most MostNodes of them.
	Nodes []Node `json:"nodes,omitempty"`
	// Subsets are the subsets of a UnitedDeployment, with their pods.
	Subsets []Subset `json:"subsets,omitempty"`
	// Request is the request that was refused, or was allowed as an exception.
	Request *Request `json:"request,omitempty"`
	// Nearest is what would have changed the answer; nil if the caller did not ask for it.
	Nearest *nearest.Result `json:"nearest,omitempty"`
	// Near computes Nearest, which may take as long as the context lasts. It is nil if there is nothing to
	// compute, and never serialized.
	Near func(context.Context) *nearest.Result `json:"-"`
	// WhatIf is what would change if facts were others; nil if the caller did not ask for it.
	WhatIf *whatif.Result `json:"whatIf,omitempty"`
	// Basis has the decisions that WhatIf makes again. It is nil if there are none, and never serialized.
	Basis *whatif.Basis `json:"-"`
	// NearBytes is how many bytes Near and Basis keep in memory: the input, which has the object of a request.
	NearBytes int `json:"-"`
	// Replica is the manager that answered.
	Replica string `json:"replica,omitempty"`
}

// MostNodes bounds the nodes of an Answer.
const MostNodes = 20

// Node is the state of the pod of a node.
type Node struct {
	Name    string  `json:"name"`
	Pod     string  `json:"pod"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Rule    string  `json:"rule,omitempty"`
}

// DisplayText is the state of a node as text for users.
func (n Node) DisplayText() string {
	return fmt.Sprintf("%s: %s%s", n.Verdict.DisplayText(), n.Reason, ruleSuffix(n.Rule))
}

// Subset is how many pods a subset gets, and why.
type Subset struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
	// Ready is how many of its pods are ready. It is nil for a workload that does not count them.
	Ready   *int   `json:"ready,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Message string `json:"message"`
}

// Request is a request for admission that an answer is about.
type Request struct {
	UID       string `json:"uid"`
	Operation string `json:"operation"`
	DryRun    bool   `json:"dryRun,omitempty"`
	User      string `json:"user"`
	// Group, Version and Resource name the resource of the object.
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

// ReasonCount counts pods with one reason. Pods that are up to date have none.
type ReasonCount struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Rule    string  `json:"rule,omitempty"`
	// Message and Pod are those of the first of these pods.
	Message string `json:"message"`
	Pod     string `json:"pod"`
	Pods    int    `json:"pods"`
}

// DisplayText is the number of pods and the reason, as text for users.
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

// Reply is the reply to a Question: the answer, and the answers about the pods of a workload if they
// were asked for.
type Reply struct {
	// TypeMeta and Metadata make the Reply an object of the API.
	metav1.TypeMeta `json:",inline"`
	Metadata        *ReplyMetadata `json:"metadata,omitempty"`

	Answer Answer   `json:"answer"`
	Pods   []Answer `json:"pods,omitempty"`
	// Placed says why a pod is in its subset, in addition to the answer.
	Placed *Answer `json:"placed,omitempty"`
	// Sidecars say why the containers of SidecarSets in a pod were or were not updated, in addition to the
	// answer.
	Sidecars []Answer `json:"sidecars,omitempty"`
	// Lacks says what a pod should have been given but was not, in addition to the answer.
	Lacks []Answer `json:"lacks,omitempty"`
	// Refusals are requests about the subject that were refused lately, the latest first, in addition to
	// the answer.
	Refusals []Answer `json:"refusals,omitempty"`
}

// ReplyMetadata names the object that the question is about.
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
	// ExplainPods explains all pods in short, in the order in which they are updated: without facts, and
	// without fields that are the same for all.
	ExplainPods() []Answer
	// CountBytes is about how many bytes the round keeps in memory, not counting objects that caches have too. Answering
	// does not increase it.
	CountBytes() int
}

// RoundWithMissingPods is a Round that knows which pods do not belong to its workload, but should.
type RoundWithMissingPods interface {
	// ExplainMissing explains why a pod was not given what it should have been, false if it was.
	ExplainMissing(namespace, pod string) (Answer, bool)
}

// RoundWithPlacements is a Round that can explain why pods are in their subsets.
type RoundWithPlacements interface {
	// ExplainPlacement explains the place of a pod, false if it is in no subset.
	ExplainPlacement(pod string) (Answer, bool)
}
