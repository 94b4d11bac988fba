package policybundle

import (
	"errors"
	"fmt"
	"strings"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/module"
)

// Refusal is why a bundle is not enforced.
type Refusal struct {
	Reason string   // of the condition Ready
	Errors []string // file:row:col message
	// passing is of what time or memory may change, not only other files.
	passing bool
}

func (r *Refusal) Error() string { return r.Reason + ": " + strings.Join(r.Errors, "; ") }

// refusal turns an error of the gate or the engine into a Refusal, where the
// bundle is to blame.
func refusal(err error) error {
	var refused *gate.RefusedError
	var rolledBack engine.RolledBackError
	var problems module.Problems
	switch {
	case errors.As(err, &refused):
		return &Refusal{Reason: reasonOf(refused.Stage), Errors: lines(refused.Problems), passing: refused.Stage == gate.Limits}
	case errors.As(err, &rolledBack):
		return &Refusal{Reason: policy.PolicyBundleRolledBackReason, Errors: []string{err.Error()}}
	case errors.As(err, &problems):
		return &Refusal{Reason: policy.PolicyBundleCompileFailedReason, Errors: lines(problems)}
	}
	return err
}

func reasonOf(s gate.Stage) string {
	switch s {
	case gate.Packages:
		return policy.PolicyBundleUnsupportedReason
	case gate.Types:
		return policy.PolicyBundleOutputInvalidReason
	case gate.Tests, gate.Limits:
		return policy.PolicyBundleTestsFailedReason
	case gate.Replay:
		return policy.PolicyBundleReplayFailedReason
	}
	return policy.PolicyBundleCompileFailedReason
}

// most is how many errors are told; a bundle can have thousands.
const most = 20

func lines(ps module.Problems) []string {
	var out []string
	for _, p := range ps[:min(len(ps), most)] {
		out = append(out, p.Place()+" "+strings.ReplaceAll(p.Message, "\n", " "))
	}
	if len(ps) > most {
		out = append(out, fmt.Sprintf("and %d more", len(ps)-most))
	}
	return out
}
