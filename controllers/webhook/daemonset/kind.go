// SPDX-License-Identifier: Apache-2.0

// Package daemonset has the admission of DaemonSets of apps.kruise.io (ADS-15). It does not repeat the
// rules of the schema and its CEL rules.
package daemonset

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// New returns the kind. Defaults of templates are set only in a copy, to check it.
func New(templates podtemplate.Settings) *admit.Kind[*v1beta1.DaemonSet] {
	v := validator{templates: templates}
	return &admit.Kind[*v1beta1.DaemonSet]{
		New:          func() *v1beta1.DaemonSet { return &v1beta1.DaemonSet{} },
		Older:        func() admit.Spoke { return &v1alpha1.DaemonSet{} },
		OlderVersion: v1alpha1.GroupVersion.Version,
		Loose:        []string{"spec.template"},
		Same:         func(a, b *v1beta1.DaemonSet) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Default:      applyDefaults,
		Validate: func(_ context.Context, set, old *v1beta1.DaemonSet, found *rules.Findings) {
			v.validateSpec(set, old, found)
		},
	}
}
