// SPDX-License-Identifier: Apache-2.0

// Package cloneset has the admission of CloneSets (CS-20): their defaults and their rules.
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
	// Pods reads the pods that a request of v1alpha1 names for deletion.
	Pods client.Reader
	// Templates are the settings for defaults of templates. The validating webhook sets them too, in a copy, for templates
	// without defaults because of KeepTemplates.
	Templates podtemplate.Settings
	// KeepTemplates leaves pod and claim templates as they are (gate TemplateNoDefaults).
	KeepTemplates bool
}

// New returns the kind.
func New(options Options) *admit.Kind[*v1beta1.CloneSet] {
	d := defaulter{templates: options.Templates, keepTemplates: options.KeepTemplates}
	v := validator{pods: options.Pods, templates: options.Templates}
	return &admit.Kind[*v1beta1.CloneSet]{
		New:   func() *v1beta1.CloneSet { return &v1beta1.CloneSet{} },
		Older: func() admit.Spoke { return &v1alpha1.CloneSet{} }, OlderVersion: v1alpha1.GroupVersion.Version, Version: v1beta1.GroupVersion.Version,
		Renamed: map[string]string{
			"spec.updateStrategy.rollingUpdate":                 "spec.updateStrategy",
			"spec.updateStrategy.rollingUpdate.podUpdatePolicy": "spec.updateStrategy.type",
		},
		Same: func(a, b *v1beta1.CloneSet) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		// Some annotations of v1alpha1 are fields of the hub, but no rule reads them.
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

// asAlpha is the CloneSet in v1alpha1, nil if the request is of v1beta1.
func asAlpha(o *object) *v1alpha1.CloneSet {
	set, _ := o.Older.(*v1alpha1.CloneSet)
	return set
}
