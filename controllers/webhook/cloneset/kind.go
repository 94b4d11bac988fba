// SPDX-License-Identifier: Apache-2.0

// Package cloneset says what admission does for CloneSets (CS-20): which defaults it fills in, and which mistakes it finds.
package cloneset

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
)

// Options are what the webhooks of CloneSets need.
type Options struct {
	// Pods is asked about the pods that a request of v1alpha1 names for deletion.
	Pods client.Reader
	// Templates are the defaults of templates. The validating webhook fills them in as well, into a copy, for templates that
	// KeepTemplates leaves without.
	Templates podtemplate.Settings
	// KeepTemplates leaves pod and claim templates as they are (gate TemplateNoDefaults).
	KeepTemplates bool
	// Checker is asked about templates that are created or changed, if there is one.
	Checker podtemplate.Checker
}

// New says how CloneSets are admitted.
func New(options Options) *admit.Kind[*v1beta1.CloneSet] {
	d := defaulter{templates: options.Templates, keepTemplates: options.KeepTemplates}
	v := validator{pods: options.Pods, templates: options.Templates, checker: options.Checker}
	return &admit.Kind[*v1beta1.CloneSet]{
		New:   func() *v1beta1.CloneSet { return &v1beta1.CloneSet{} },
		Older: func() admit.Spoke { return &v1alpha1.CloneSet{} }, OlderVersion: v1alpha1.GroupVersion.Version, Version: v1beta1.GroupVersion.Version,
		Renamed: map[string]string{
			"spec.updateStrategy.rollingUpdate":                 "spec.updateStrategy",
			"spec.updateStrategy.rollingUpdate.podUpdatePolicy": "spec.updateStrategy.type",
		},
		Same: func(a, b *v1beta1.CloneSet) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		// Annotations of v1alpha1 are fields of the hub, but no rule is about them.
		SameOlder: func(a, b admit.Spoke) bool {
			return equality.Semantic.DeepEqual(a.(*v1alpha1.CloneSet).Spec, b.(*v1alpha1.CloneSet).Spec)
		},
		Default:         d.applyDefaults,
		DefaultOlder:    func(set admit.Spoke, old *v1beta1.CloneSet) { d.fillAlpha(set.(*v1alpha1.CloneSet), old) },
		ValidateVersion: v.validateSpec,
	}
}

// object is a CloneSet in a request.
type object = admit.Object[*v1beta1.CloneSet]

// asAlpha is the CloneSet as v1alpha1 has it, nil if the request is of v1beta1.
func asAlpha(o *object) *v1alpha1.CloneSet {
	set, _ := o.Older.(*v1alpha1.CloneSet)
	return set
}
