// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// refusal is why the newest policies of a bundle do not take effect.
type refusal struct {
	stage  string // a condition of a stage
	reason string
	errors []string
	// passing is true if the refusal may pass with time, without another bundle.
	passing bool
}

// mayPass reports whether the same object may be accepted later: the source is asked again, for what is not there yet or not signed
// yet, and another bundle that is in conflict may go.
func (r *refusal) mayPass() bool {
	return r.passing || r.stage == policy.PolicyBundleFetched || r.stage == policy.PolicyBundleVerified || r.reason == policy.PolicyBundleConflictReason
}

// setStagesPassed sets the conditions of all stages before one to passed.
func setStagesPassed(b policy.AnyPolicyBundle, until string) {
	for _, stage := range policy.PolicyBundleStages() {
		if stage == until {
			return
		}
		if stage == policy.PolicyBundleVerified && b.DesiredSpec().Verification == nil {
			setCondition(b, stage, metav1.ConditionTrue, policy.PolicyBundleNotRequiredReason, "Nothing was verified, as there are no keys in spec.verification.")
			continue
		}
		setCondition(b, stage, metav1.ConditionTrue, policy.PolicyBundlePassedReason, "")
	}
}

// setRefused sets the condition of the stage that stopped a bundle. The results of later stages are not known.
func setRefused(b policy.AnyPolicyBundle, r *refusal) {
	st := b.GetStatus()
	st.Errors = nil
	for _, e := range r.errors {
		st.Errors = append(st.Errors, decision.TruncateText(e, longest))
	}
	message := failureMessage(st) + lackingMessage(st)
	setStagesPassed(b, r.stage)
	setCondition(b, r.stage, metav1.ConditionFalse, r.reason, message)
	stages := policy.PolicyBundleStages()
	for _, stage := range stages[slices.Index(stages, r.stage)+1:] {
		status := metav1.ConditionUnknown
		if stage == policy.PolicyBundleActive {
			status = metav1.ConditionFalse
		}
		setCondition(b, stage, status, policy.PolicyBundleNotReachedReason, fmt.Sprintf("The stage %s stopped the bundle.", r.stage))
	}
	summarize := kstatus.NewStalled
	if r.mayPass() {
		summarize = kstatus.NewReconciling
	}
	setReady(b, summarize(r.reason, message))
}

// setAccepted sets the conditions of a bundle that takes effect as its spec says.
func setAccepted(b policy.AnyPolicyBundle, reason, message string) {
	b.GetStatus().Errors = nil
	setStagesPassed(b, policy.PolicyBundleActive)
	status := metav1.ConditionTrue
	if reason == policy.PolicyBundleShadowReason {
		status = metav1.ConditionFalse
	}
	setCondition(b, policy.PolicyBundleActive, status, reason, message)
	st, summarize := b.GetStatus(), kstatus.NewReady
	if n := len(lackingReplicas(st)); n > 0 && n == len(st.Replicas) {
		summarize, reason = kstatus.NewReconciling, policy.PolicyBundleNotEnforcedReason
	}
	setReady(b, summarize(reason, message+lackingMessage(st)))
}

// setReady sets Ready, and the conditions that say whether a bundle that is not ready may become it without a change.
func setReady(b policy.AnyPolicyBundle, s kstatus.Summary) {
	kstatus.SetConditions(b.GetStatus(), s, b.GetGeneration(), time.Now())
}

func setCondition(b policy.AnyPolicyBundle, name string, status metav1.ConditionStatus, reason, text string) {
	condition.SetCondition(b.GetStatus(), condition.Condition{Type: name, Status: status, Reason: reason, Message: text}, b.GetGeneration(), metav1.Now())
}

// activeMessage says which revision is enforced in place of the newest.
func activeMessage(active string) string {
	if active == "" {
		return policy.PolicyBundleNothingActiveMessage
	}
	return fmt.Sprintf(policy.PolicyBundleStaysMessage, active)
}

// lackingMessage reports replicas that do not enforce the active revision, such as replicas that
// started after its archive was lost.
func lackingMessage(st *policy.PolicyBundleStatus) string {
	those := lackingReplicas(st)
	if len(those) == 0 {
		return ""
	}
	return fmt.Sprintf(policy.PolicyBundleWithoutMessage, len(those), len(st.Replicas), those[0].Name, strings.TrimSuffix(decision.TruncateText(those[0].Problem, longest), "."))
}

// lackingReplicas returns the replicas that do not enforce the active revision, for another reason than a rollback.
func lackingReplicas(st *policy.PolicyBundleStatus) []policy.PolicyReplica {
	return slices.DeleteFunc(slices.Clone(st.Replicas), func(r policy.PolicyReplica) bool {
		return st.ActiveRevision == "" || r.Revision == st.ActiveRevision || r.Problem == "" || r.RolledBack != ""
	})
}

// lowerFirst makes the first letter of a sentence lower case, so that it can follow a comma.
func lowerFirst(sentence string) string { return strings.ToLower(sentence[:1]) + sentence[1:] }

// failureMessage is the message of a bundle whose newest policies were stopped.
func failureMessage(st *policy.PolicyBundleStatus) string {
	errors, first := st.Errors, "the reason is not known"
	if len(errors) > 0 {
		first = strings.TrimSuffix(errors[0], ".")
	}
	if more := len(errors) - 1; more > 0 {
		first += fmt.Sprintf(" (and %d more in status.errors)", more)
	}
	instead := activeMessage(st.ActiveRevision)
	if st.Withheld != nil && st.Active == nil {
		instead = fmt.Sprintf(policy.PolicyBundleWithheldMessage, st.Withheld.Revision)
	}
	return fmt.Sprintf(policy.PolicyBundleFailedMessage, first, instead)
}

// longest is how many bytes of an error are kept. The API server refuses a condition with a message of
// more than 32,768 bytes, and an error may quote a whole file or its name. Without this limit, the
// status might not say why a bundle is refused.
const longest = 2000

// stageOf is the condition of a stage of the gate, and its reason.
func stageOf(s gate.Stage) (stage, reason string) {
	switch s {
	case gate.Packages:
		return policy.PolicyBundleContractOK, policy.PolicyBundleUnsupportedReason
	case gate.Schemas:
		return policy.PolicyBundleContractOK, policy.PolicyBundleCompileFailedReason
	case gate.Types:
		return policy.PolicyBundleContractOK, policy.PolicyBundleOutputInvalidReason
	case gate.Tests, gate.Limits:
		return policy.PolicyBundleTestsPassed, policy.PolicyBundleTestsFailedReason
	case gate.Replay:
		return policy.PolicyBundleReplayOK, policy.PolicyBundleReplayFailedReason
	}
	return policy.PolicyBundleCompiled, policy.PolicyBundleCompileFailedReason
}

// most is how many errors a condition lists; a bundle can have thousands.
const most = 20

func problemLines(ps module.Problems) []string {
	var out []string
	for _, p := range ps[:min(len(ps), most)] {
		out = append(out, p.FormatLine())
	}
	if len(ps) > most {
		out = append(out, fmt.Sprintf("and %d more", len(ps)-most))
	}
	return out
}
