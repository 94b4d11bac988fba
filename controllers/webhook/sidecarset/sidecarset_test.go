// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/expression"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/test/apiserver"
)

func TestExpressions(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"cpu", ""}, {"CPU*50%", ""}, {"max(cpu*50%, 200m)", ""}, {"min(cpu, max(1, 2))", ""}, {"-(cpu - 0.5) / 2", ""}, {"1e3 + 100m", ""}, {"2*cpu", ""},
		{"cpu/4+1", ""}, {"memory", `"memory" is no number`}, {"cpu cpu", `"cpu" is not expected there`}, {"(cpu", `it ends where ")" is expected`},
		{"max(cpu)", `")" stands where "," is expected`}, {"max(1,2,3)", `"," stands where ")" is expected`}, {"max cpu", `"cpu" stands where "(" is expected`},
		{"cpu*cpu", "multiplied by a quantity"}, {"1/cpu", "divided by a quantity"}, {"cpu/100m", "divided by a quantity"}, {"cpu+", "it ends where a value"},
		{"cpu & 1", `"&" is not expected`}, {"NaN", `"NaN" is no number`}, {"1.2.3", `"1.2.3" is no number`}, {"(cpu*)", `")" is no number`},
	} {
		if _, err := expression.Parse(tc.text, "cpu"); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.text, err, tc.want)
		}
	}
}

// SS-18, both ways round.
func TestOverlap(t *testing.T) {
	labels := func(pairs ...string) *metav1.LabelSelector {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			s.MatchLabels[pairs[i]] = pairs[i+1]
		}
		return s
	}
	is := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	for _, tc := range []struct {
		name string
		a, b *metav1.LabelSelector
		want bool
	}{
		{"the same value", labels("a", "1"), labels("a", "1"), true},
		{"other values", labels("a", "1"), labels("a", "2"), false},
		{"other keys", labels("a", "1"), labels("b", "1"), true},
		{"a value of some", labels("a", "1"), is("a", metav1.LabelSelectorOpIn, "1", "2"), true},
		{"a value of none", labels("a", "1"), is("a", metav1.LabelSelectorOpIn, "2", "3"), false},
		{"a value left", is("a", metav1.LabelSelectorOpIn, "1", "2"), is("a", metav1.LabelSelectorOpNotIn, "1"), true},
		{"no value left", is("a", metav1.LabelSelectorOpIn, "1", "2"), is("a", metav1.LabelSelectorOpNotIn, "1", "2"), false},
		{"any value but one, where the quirk takes NotIn for no mention", is("a", metav1.LabelSelectorOpExists), is("a", metav1.LabelSelectorOpNotIn, "1"), false},
		{"any value and one", is("a", metav1.LabelSelectorOpExists), labels("a", "1"), true},
		{"a key that must not be there", labels("a", "1"), is("a", metav1.LabelSelectorOpDoesNotExist), false},
		{"a key that no label has", labels("b", "1"), is("a", metav1.LabelSelectorOpDoesNotExist), true},
		{"a key that the other does not mention", labels("b", "1"), is("a", metav1.LabelSelectorOpExists), false},
	} {
		if got := selectorsOverlap(tc.a, tc.b); got != tc.want || selectorsOverlap(tc.b, tc.a) != tc.want {
			t.Errorf("%s: got %t", tc.name, got)
		}
	}
}

// broken is an API server that does not answer.
type broken struct{ client.Reader }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no answer")
}

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no answer")
}

func TestWhatCannotBeLookedUpIsNotTaken(t *testing.T) {
	o := Options{Reader: broken{}, Configuration: rules.Configuration{Reader: broken{}, Namespace: "ns"}}
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "set", Annotations: map[string]string{
		v1beta1.SidecarSetCanaryKey: "true", v1beta1.SidecarSetBaseKey: "base",
	}}}
	set.Spec.UpdateStrategy.Type = v1beta1.NotUpdateSidecarSetStrategyType
	set.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{CustomVersion: ptr.To("1")}
	set.Spec.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{{Annotations: map[string]string{"a": "b"}}}
	for name, look := range map[string]func(*rules.Findings){
		"the base":      func(f *rules.Findings) { o.validateCanary(t.Context(), set, nil, f) },
		"the revision":  func(f *rules.Findings) { o.validateRevision(t.Context(), set, nil, f) },
		"the whitelist": func(f *rules.Findings) { o.validateMetadata(t.Context(), set, nil, f) },
		"other sets":    func(f *rules.Findings) { o.validateOthers(t.Context(), set, f) },
	} {
		found := &rules.Findings{}
		look(found)
		if len(found.Errs) != 1 || !strings.Contains(found.Errs[0].Error(), "Internal error") {
			t.Errorf("%s: got %v", name, found.Errs)
		}
	}
}

// A whitelist whose rules have no expressions for a SidecarSet is none for it, so that the gate decides.
func TestTheGateDecidesWhereNoRuleOfTheWhitelistIsForASidecarSet(t *testing.T) {
	for name, tc := range map[string]struct {
		list        string
		labels      map[string]string
		open, close string // what is found with the gate and without it
	}{
		"no list":                        {"", nil, "", "there is no whitelist"},
		"no rules":                       {`{"rules": []}`, nil, "", "there is no whitelist"},
		"a rule without expressions":     {`{"rules": [{}]}`, nil, "", "there is no whitelist"},
		"a rule for others":              {`{"rules": [{"selector": {"matchLabels": {"team": "ops"}}, "allowedAnnotationKeyExprs": ["b"]}]}`, nil, "", "there is no whitelist"},
		"a rule for it":                  {`{"rules": [{"selector": {"matchLabels": {"team": "ops"}}, "allowedAnnotationKeyExprs": ["b"]}]}`, map[string]string{"team": "ops"}, "does not have it", "does not have it"},
		"a rule for it that allows it":   {`{"rules": [{"allowedAnnotationKeyExprs": ["^a"]}]}`, nil, "", ""},
		"an expression that is not read": {`{"rules": [{"allowedAnnotationKeyExprs": ["^a", "("]}]}`, nil, "Internal error", "Internal error"},
	} {
		for _, gate := range []bool{true, false} {
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: rules.ConfigurationName}, Data: map[string]string{}}
			if tc.list != "" {
				config.Data[v1beta1.SidecarSetWhiteListKey] = tc.list
			}
			reader := fake.NewClientBuilder().WithObjects(config).Build()
			o := Options{Configuration: rules.Configuration{Reader: reader, Namespace: "ns"}, PatchAnyMetadata: gate}
			set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "set", Labels: tc.labels}}
			set.Spec.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{{Annotations: map[string]string{"a": "x"}}}
			found, want := &rules.Findings{}, tc.close
			if gate {
				want = tc.open
			}
			o.validateMetadata(t.Context(), set, nil, found)
			if want == "" && len(found.Errs) > 0 || want != "" && (len(found.Errs) != 1 || !strings.Contains(found.Errs[0].Error(), want)) {
				t.Errorf("%s, gate %t: found %v, want %q", name, gate, found.Errs, want)
			}
		}
	}
}

// A base and its canary give the same pods containers of the same names, whichever of the two is written.
func TestABaseIsNotComparedWithItsCanary(t *testing.T) {
	of := func(name, base string) *v1beta1.SidecarSet {
		set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if base != "" {
			set.Annotations = map[string]string{v1beta1.SidecarSetCanaryKey: "true", v1beta1.SidecarSetBaseKey: base}
		}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log"}}}
		return set
	}
	for name, tc := range map[string]struct {
		set, other *v1beta1.SidecarSet
		want       int
	}{
		"the base":              {of("logs", ""), of("canary", "logs"), 0},
		"the canary":            {of("canary", "logs"), of("logs", ""), 0},
		"another SidecarSet":    {of("agent", ""), of("canary", "logs"), 1},
		"the canary of another": {of("canary", "agent"), of("logs", ""), 1},
	} {
		found := &rules.Findings{}
		o := Options{Reader: fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(tc.other).Build()}
		if o.validateOthers(t.Context(), tc.set, found); len(found.Errs) != tc.want {
			t.Errorf("%s is written: got %v", name, found.Errs)
		}
	}
}

func TestAPullPolicyThatWasFilledInStays(t *testing.T) {
	of := func(image, policy string) *v1beta1.SidecarSet {
		set := &v1beta1.SidecarSet{}
		for _, list := range []*[]v1beta1.SidecarContainer{&set.Spec.Containers, &set.Spec.InitContainers} {
			*list = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: image, ImagePullPolicy: corev1.PullPolicy(policy)}}}
		}
		return set
	}
	renamed := of("busybox", "Always")
	renamed.Spec.Containers[0].Name, renamed.Spec.InitContainers[0].Name = "other", "other"
	for name, tc := range map[string]struct {
		set, old *v1beta1.SidecarSet
		keep     bool
		want     corev1.PullPolicy
	}{
		"a new SidecarSet has that of its tag":          {set: of("busybox:1.35.0", ""), want: "IfNotPresent"},
		"one that gets a tag keeps that of none":        {set: of("busybox:1.35.0", ""), old: of("busybox", "Always"), want: "Always"},
		"one that loses its tag keeps that of one":      {set: of("busybox", ""), old: of("busybox:1.35.0", "IfNotPresent"), want: "IfNotPresent"},
		"what the user says is taken":                   {set: of("busybox:1.35.0", "Never"), old: of("busybox", "Always"), want: "Never"},
		"and keeps it at the next change":               {set: of("busybox:1.36", ""), old: of("busybox:1.35.0", "Always"), want: "Always"},
		"what no default is was said, and is forgotten": {set: of("busybox:1.36", ""), old: of("busybox:1.35.0", "Never"), want: "IfNotPresent"},
		"a new container has that of its tag":           {set: of("busybox:1.35.0", ""), old: renamed, want: "IfNotPresent"},
		"templates that are left alone have none":       {set: of("busybox:1.35.0", ""), old: of("busybox", "Always"), keep: true},
	} {
		t.Run(name, func(t *testing.T) {
			Options{KeepTemplates: tc.keep}.setDefaults(tc.set, tc.old)
			if got, init := tc.set.Spec.Containers[0].ImagePullPolicy, tc.set.Spec.InitContainers[0].ImagePullPolicy; got != tc.want || init != tc.want {
				t.Errorf("got %q, and %q for the init container, want %q", got, init, tc.want)
			}
		})
	}
}
