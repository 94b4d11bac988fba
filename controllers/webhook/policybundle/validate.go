// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

const (
	// longestProblem is how many bytes a problem of a file has in a response. A response has each problem twice, in the message and
	// as a cause.
	longestProblem = 500
	// mostConflicts is how many conflicts with other bundles get a warning. The API server truncates warnings that are long together.
	mostConflicts = 3
	// longestWarning is how long a warning is that the API server never truncates.
	longestWarning = 250
)

type validator struct{ judge Judge }

// validateSpec checks the parts of a spec that differ from those before. A bundle that was stored before can so get another mode
// or be rolled back, whatever its files are. was is empty for a new bundle.
func (v *validator) validateSpec(ctx context.Context, b policy.AnyPolicyBundle, was policy.Wanted, found *rules.Findings) {
	w := b.DesiredSpec()
	if !equality.Semantic.DeepEqual(w.Verification, was.Verification) {
		validateKeys(w.Verification, found)
	}
	if equality.Semantic.DeepEqual(w.PolicySource, was.PolicySource) {
		return
	}
	if len(w.Files) == 0 {
		validateSource(b, w, found)
		return
	}
	if v.judge != nil {
		addVerdict(b, w, v.judge.JudgeFiles(ctx, b), found)
	}
}

// addVerdict adds what is known of files. While spec.rollbackTo is set the files are not enforced, so they may have any problem.
func addVerdict(b policy.AnyPolicyBundle, w policy.Wanted, verdict policybundle.FilesVerdict, found *rules.Findings) {
	path := field.NewPath("spec", "files")
	problem := func(p policybundle.FileProblem) *field.Error {
		text := decision.TruncateText(p.Text, longestProblem)
		if _, ok := w.Files[p.File]; ok {
			return field.Invalid(path.Key(p.File), field.OmitValueType{}, text)
		}
		return field.Invalid(path, field.OmitValueType{}, text)
	}
	for i, p := range verdict.Problems {
		switch {
		case w.RollbackTo == "":
			found.AddErrors(problem(p))
		case i == 0:
			addWarning(found, path, "they have problems, and are not enforced while spec.rollbackTo is set: "+p.Text)
		}
	}
	for _, p := range verdict.Conflicts[:min(len(verdict.Conflicts), mostConflicts)] {
		addWarning(found, path, p.Text+"; the bundle is refused while that is so (condition ContractOK)")
	}
	look := strings.TrimSpace("kubectl get "+strings.ToLower(policy.KindOf(b).Kind)+" "+b.GetName()) + " -o wide"
	switch {
	case len(verdict.Problems) > 0:
	case verdict.Unchecked != "":
		addWarning(found, path, "not checked yet, as "+verdict.Unchecked+"; they take effect only if they pass: "+look)
	case verdict.Tests:
		addWarning(found, path, "the tests are run after this; the files take effect only if they pass (condition TestsPassed): "+look)
	}
}

func addWarning(found *rules.Findings, path *field.Path, text string) {
	found.AddWarning(path, "%s", decision.TruncateText(text, longestWarning-len(path.String())))
}

// validateSource reports a source that cannot be fetched whatever is there.
func validateSource(b policy.AnyPolicyBundle, w policy.Wanted, found *rules.Findings) {
	var wrong fetch.SourceError
	if err := policybundle.ValidateSource(b); !errors.As(err, &wrong) {
		return
	}
	path := field.NewPath("spec")
	if wrong.Field == "caBundle" {
		path = path.Child(map[bool]string{true: "oci", false: "http"}[w.OCI != nil])
	}
	for step := range strings.SplitSeq(wrong.Field, ".") {
		path = path.Child(step)
	}
	found.AddErrors(field.Invalid(path, field.OmitValueType{}, decision.TruncateText(wrong.Err.Error(), longestProblem)))
}

// validateKeys reports keys that verify no signature. All bundles are refused with such a key.
func validateKeys(verification *policy.PolicyVerification, found *rules.Findings) {
	if verification == nil {
		return
	}
	err := policyhost.NewVerification(verification).CheckKeys()
	if err == nil {
		return
	}
	path := field.NewPath("spec", "verification", "keys")
	if errors.As(err, &bundle.UnknownKeyError{}) {
		path = field.NewPath("spec", "verification", "keyID")
	}
	found.AddErrors(field.Invalid(path, field.OmitValueType{}, decision.TruncateText(err.Error(), longestProblem)))
}

// warnCanary warns of a canary that has no effect. A canary that was there before stays without a warning: it is promoted by the
// mode alone.
func warnCanary(b *policy.ClusterPolicyBundle, was *policy.PolicyCanary, found *rules.Findings) {
	canary := b.Spec.Canary
	if canary == nil || equality.Semantic.DeepEqual(canary, was) {
		return
	}
	path := field.NewPath("spec", "canary")
	if b.Spec.Mode != policy.PolicyModeCanary {
		addWarning(found, path, "has no effect unless spec.mode is Canary")
	}
	wrong := slices.DeleteFunc(slices.Clone(canary.Namespaces), func(ns string) bool {
		return len(validation.ValidateNamespaceName(ns, false)) == 0
	})
	if len(wrong) > 0 {
		addWarning(found, path.Child("namespaces"), "no namespace can have the name \""+wrong[0]+"\"")
	}
}
