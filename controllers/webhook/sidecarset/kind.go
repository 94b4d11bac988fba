// SPDX-License-Identifier: Apache-2.0

// Package sidecarset has the admission of SidecarSets (SS-19): their defaults and their rules, in both versions.
//
// The parts of a SidecarSet that are added to pods are checked like a pod, and compared with other SidecarSets of the same
// pods. A check that depends on other objects applies only to changed fields, since those objects may have changed since.
package sidecarset

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

// Options are what the webhooks of SidecarSets need.
type Options struct {
	// Reader reads other SidecarSets and revisions.
	Reader client.Reader
	// Configuration has the whitelist of annotations. Revisions are in its namespace.
	Configuration rules.Configuration
	// Templates are the settings for defaults of containers.
	Templates podtemplate.Settings
	// KeepTemplates leaves containers as they are (gate TemplateNoDefaults).
	KeepTemplates bool
	// PatchAnyMetadata allows all annotations if no rule of the whitelist selects the SidecarSet (gate
	// SidecarSetPatchPodMetadataDefaultsAllowed).
	PatchAnyMetadata bool
	// Await waits until the API server sends the pods that a SidecarSet selects, before the SidecarSet is written;
	// nil if no pods are sent.
	Await func(ctx context.Context, set *v1beta1.SidecarSet) error
}

// New returns the kind.
func New(options Options) *admit.Kind[*v1beta1.SidecarSet] {
	return &admit.Kind[*v1beta1.SidecarSet]{
		New:   func() *v1beta1.SidecarSet { return &v1beta1.SidecarSet{} },
		Older: func() admit.Spoke { return &v1alpha1.SidecarSet{} }, OlderVersion: v1alpha1.GroupVersion.Version,
		Loose: []string{"spec.containers", "spec.initContainers", "spec.volumes"},
		Same:  isUnchanged, Default: options.setDefaults, Validate: options.validateSpec, Accepted: options.awaitPodsSent,
	}
}

// awaitPodsSent returns once the API server sends the pods that a SidecarSet selects, if it may select other
// pods than before.
func (o Options) awaitPodsSent(ctx context.Context, set, old *v1beta1.SidecarSet) error {
	if o.Await == nil || old != nil && equality.Semantic.DeepEqual(set.Spec.Selector, old.Spec.Selector) &&
		equality.Semantic.DeepEqual(set.Spec.NamespaceSelector, old.Spec.NamespaceSelector) {
		return nil
	}
	return o.Await(ctx, set)
}

// isUnchanged compares labels too, since rules of the whitelist select by them.
func isUnchanged(a, b *v1beta1.SidecarSet) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		isCanary(a) == isCanary(b) && baseOf(a) == baseOf(b)
}

func isCanary(set *v1beta1.SidecarSet) bool {
	return set.Annotations[v1beta1.SidecarSetCanaryKey] == "true"
}

// baseOf is the name of the SidecarSet that a canary replaces in some pods; empty if the SidecarSet is no
// canary.
func baseOf(set *v1beta1.SidecarSet) string {
	if !isCanary(set) {
		return ""
	}
	return set.Annotations[v1beta1.SidecarSetBaseKey]
}
