// SPDX-License-Identifier: Apache-2.0

// Package statefulset has the admission of StatefulSets of apps.kruise.io (ASTS-17). It does not
// repeat the rules of the schema and its CEL rules.
package statefulset

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// Gates are the feature gates about claims.
type Gates struct {
	// AutoDeletePVC is gate StatefulSetAutoDeletePVC.
	AutoDeletePVC bool
	// AutoResizePVC is gate StatefulSetAutoResizePVCGate.
	AutoResizePVC bool
}

// New returns the kind. The reader reads storage classes.
func New(reader client.Reader, templates podtemplate.Settings, keepTemplates bool, gates Gates) *admit.Kind[*v1beta1.StatefulSet] {
	d := defaulter{templates: templates, keepTemplates: keepTemplates, gates: gates}
	v := validator{reader: reader, templates: templates, gates: gates}
	return &admit.Kind[*v1beta1.StatefulSet]{
		New:          func() *v1beta1.StatefulSet { return &v1beta1.StatefulSet{} },
		Older:        func() admit.Spoke { return &v1alpha1.StatefulSet{} },
		OlderVersion: v1alpha1.GroupVersion.Version,
		Loose:        []string{"spec.template", "spec.volumeClaimTemplates"},
		Same:         func(a, b *v1beta1.StatefulSet) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Default:      d.applyDefaults,
		DefaultNewer: d.fillNewer,
		Validate: func(ctx context.Context, set, old *v1beta1.StatefulSet, found *rules.Findings) {
			v.validateSpec(ctx, set, old, found)
		},
	}
}
