// SPDX-License-Identifier: Apache-2.0

// Package policybundle has the admission of ClusterPolicyBundles and PolicyBundles: policies that do not compile are refused when
// they are applied, at their place in the file.
//
// It refuses only what the controller would refuse whatever else is in the cluster. Other problems, such as a package that another
// bundle has, are warnings. What it does not check, the controller does: the webhook is ignored while it does not answer.
package policybundle

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// Judge checks the inline files of a bundle.
type Judge interface {
	JudgeFiles(ctx context.Context, b policy.AnyPolicyBundle) policybundle.FilesVerdict
}

// NewPlatform makes the webhook of ClusterPolicyBundles. No files are checked if the judge is nil.
func NewPlatform(judge Judge) *admit.Kind[*policy.ClusterPolicyBundle] {
	v := &validator{judge: judge}
	return &admit.Kind[*policy.ClusterPolicyBundle]{
		New: func() *policy.ClusterPolicyBundle { return &policy.ClusterPolicyBundle{} },
		Same: func(b, old *policy.ClusterPolicyBundle) bool {
			return b.DeletionTimestamp != nil || equality.Semantic.DeepEqual(b.Spec, old.Spec)
		},
		Validate: func(ctx context.Context, b, old *policy.ClusterPolicyBundle, found *rules.Findings) {
			if old == nil {
				v.validateSpec(ctx, b, policy.Wanted{}, found)
				warnCanary(b, nil, found)
				return
			}
			v.validateSpec(ctx, b, old.DesiredSpec(), found)
			warnCanary(b, old.Spec.Canary, found)
		},
	}
}

// NewTenant makes the webhook of PolicyBundles. No files are checked if the judge is nil.
func NewTenant(judge Judge) *admit.Kind[*policy.PolicyBundle] {
	v := &validator{judge: judge}
	return &admit.Kind[*policy.PolicyBundle]{
		New: func() *policy.PolicyBundle { return &policy.PolicyBundle{} },
		Same: func(b, old *policy.PolicyBundle) bool {
			return b.DeletionTimestamp != nil || equality.Semantic.DeepEqual(b.Spec, old.Spec)
		},
		Validate: func(ctx context.Context, b, old *policy.PolicyBundle, found *rules.Findings) {
			was := policy.Wanted{}
			if old != nil {
				was = old.DesiredSpec()
			}
			v.validateSpec(ctx, b, was, found)
		},
	}
}
