// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// validateMetadata checks only new annotations against the whitelist, which may have changed since the others
// were set.
func (o Options) validateMetadata(ctx context.Context, set, old *v1beta1.SidecarSet, found *rules.Findings) {
	path, patches := field.NewPath("spec", "patchPodMetadata"), set.Spec.PatchPodMetadata
	seen := map[string]bool{}
	for i, patch := range patches {
		at := path.Index(i).Child("annotations")
		found.AddErrors(apivalidation.ValidateAnnotations(patch.Annotations, at)...)
		for _, key := range sortedKeys(patch.Annotations) {
			if seen[key] {
				found.AddErrors(field.Duplicate(at.Key(key), key))
			}
			seen[key] = true
			if value := patch.Annotations[key]; patch.PatchPolicy == v1beta1.SidecarSetMergePatchJSONPatchPolicy && !json.Valid([]byte(value)) {
				found.AddErrors(field.Invalid(at.Key(key), value, "must be JSON for the policy MergePatchJson"))
			}
		}
	}
	changed := old == nil || !equality.Semantic.DeepEqual(patches, old.Spec.PatchPodMetadata) || !equality.Semantic.DeepEqual(set.Labels, old.Labels)
	if len(patches) > 0 && changed {
		o.validateAllowed(ctx, set, path, found)
	}
}

func (o Options) validateAllowed(ctx context.Context, set *v1beta1.SidecarSet, path *field.Path, found *rules.Findings) {
	list := struct {
		Rules []allowance
	}{}
	_, err := o.Configuration.Read(ctx, v1beta1.SidecarSetWhiteListKey, &list)
	if err != nil {
		found.AddErrors(field.InternalError(path, err))
		return
	}
	expressions, err := allowedKeys(list.Rules, set.Labels)
	switch {
	case err != nil:
		found.AddErrors(field.InternalError(path, fmt.Errorf("reading %s of ConfigMap %s/%s: %w",
			v1beta1.SidecarSetWhiteListKey, o.Configuration.Namespace, rules.ConfigurationName, err)))
		return
	case len(expressions) == 0 && o.PatchAnyMetadata:
		return
	case len(expressions) == 0:
		found.AddErrors(field.Forbidden(path, fmt.Sprintf("there is no whitelist %s in ConfigMap %s/%s that allows this SidecarSet annotations",
			v1beta1.SidecarSetWhiteListKey, o.Configuration.Namespace, rules.ConfigurationName)))
		return
	}
	for i, patch := range set.Spec.PatchPodMetadata {
		for _, key := range sortedKeys(patch.Annotations) {
			if !slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(key) }) {
				found.AddErrors(field.Forbidden(path.Index(i).Child("annotations").Key(key), "the whitelist of annotations does not have it"))
			}
		}
	}
}

// allowance allows SidecarSets that the selector selects, or all, to set annotations.
type allowance struct {
	Selector                  *metav1.LabelSelector
	AllowedAnnotationKeyExprs []string
}

// allowedKeys returns the expressions of the rules that select a SidecarSet.
func allowedKeys(list []allowance, set labels.Set) (out []*regexp.Regexp, err error) {
	for _, rule := range list {
		if rule.Selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(rule.Selector)
			if err != nil {
				return nil, fmt.Errorf("reading a selector: %w", err)
			}
			if !selector.Matches(set) {
				continue
			}
		}
		for _, text := range rule.AllowedAnnotationKeyExprs {
			expression, err := regexp.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", text, err)
			}
			out = append(out, expression)
		}
	}
	return out, nil
}

func sortedKeys(annotations map[string]string) []string { return slices.Sorted(maps.Keys(annotations)) }
