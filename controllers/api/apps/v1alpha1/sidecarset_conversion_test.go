// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

const versionLabel = v1beta1.SidecarSetCustomVersionKey

func matching(labels ...string) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		selector.MatchLabels[labels[i]] = labels[i+1]
	}
	return selector
}

func TestSidecarSetNamespacesToHub(t *testing.T) {
	shop := matching("kubernetes.io/metadata.name", "shop")
	for _, tc := range []struct {
		name string
		in   SidecarSetSpec
		want *metav1.LabelSelector
		kept string
	}{
		{name: "nothing said is all namespaces"},
		{name: "a namespace is a selector of its name", in: SidecarSetSpec{Namespace: "shop"}, want: shop},
		{name: "a selector is a selector", in: SidecarSetSpec{NamespaceSelector: matching("a", "b")}, want: matching("a", "b")},
		{
			name: "a namespace wins over a selector, which is kept",
			in:   SidecarSetSpec{Namespace: "shop", NamespaceSelector: matching("a", "b")}, want: shop,
			kept: `{"namespace":"shop","namespaceSelector":{"matchLabels":{"a":"b"}}}`,
		},
		{
			name: "a selector of a name is kept, so that it does not become a namespace",
			in:   SidecarSetSpec{NamespaceSelector: shop}, want: shop,
			kept: `{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"shop"}}}`,
		},
		{
			name: "a selector of an empty name is no namespace",
			in:   SidecarSetSpec{NamespaceSelector: matching("kubernetes.io/metadata.name", "")}, want: matching("kubernetes.io/metadata.name", ""),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := &v1beta1.SidecarSet{}
			if err := (&SidecarSet{Spec: tc.in}).ConvertTo(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Spec.NamespaceSelector); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Annotations[conversiondata.OlderKey] != tc.kept {
				t.Errorf("kept %s, want %s", got.Annotations[conversiondata.OlderKey], tc.kept)
			}
		})
	}
}

func TestSidecarSetNamespacesFromHub(t *testing.T) {
	kept := `{"namespace":"shop","namespaceSelector":{"matchLabels":{"a":"b"}}}`
	for _, tc := range []struct {
		name     string
		selector *metav1.LabelSelector
		kept     string
		want     SidecarSetSpec
	}{
		{name: "a selector of a name is a namespace", selector: matching("kubernetes.io/metadata.name", "shop"), want: SidecarSetSpec{Namespace: "shop"}},
		{
			name:     "a selector of more than a name stays a selector",
			selector: matching("kubernetes.io/metadata.name", "shop", "a", "b"),
			want:     SidecarSetSpec{NamespaceSelector: matching("kubernetes.io/metadata.name", "shop", "a", "b")},
		},
		{
			name: "the selector that lost comes back", selector: matching("kubernetes.io/metadata.name", "shop"), kept: kept,
			want: SidecarSetSpec{Namespace: "shop", NamespaceSelector: matching("a", "b")},
		},
		{
			name: "another namespace that was written since wins", selector: matching("kubernetes.io/metadata.name", "bank"), kept: kept,
			want: SidecarSetSpec{Namespace: "bank"},
		},
		{name: "all namespaces that were written since win", kept: kept},
		{
			name: "an unreadable annotation has no effect", selector: matching("a", "b"), kept: `{"namespace":1}`,
			want: SidecarSetSpec{NamespaceSelector: matching("a", "b")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hub, got := &v1beta1.SidecarSet{Spec: v1beta1.SidecarSetSpec{NamespaceSelector: tc.selector}}, &SidecarSet{}
			if tc.kept != "" {
				hub.Annotations = map[string]string{conversiondata.OlderKey: tc.kept}
			}
			if err := got.ConvertFrom(hub); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSidecarSetVersionFromHub(t *testing.T) {
	long := strings.Repeat("v", 64)
	for _, tc := range []struct {
		name, version string
		labels, want  map[string]string
		kept          string
	}{
		{name: "no version is no label"},
		{name: "a version is a label", version: "v1", want: map[string]string{versionLabel: "v1"}, kept: `{"customVersion":"v1"}`},
		{name: "a label that is there already is nothing to keep", version: "v1", labels: map[string]string{versionLabel: "v1"}, want: map[string]string{versionLabel: "v1"}},
		{name: "an empty label is no version", labels: map[string]string{versionLabel: ""}, want: map[string]string{versionLabel: ""}},
		{name: "a label without a version is kept and gone", labels: map[string]string{versionLabel: "v1"}, kept: `{"label":"v1"}`},
		{
			name: "a version wins over the label", version: "v2", labels: map[string]string{versionLabel: "v1", "a": "b"},
			want: map[string]string{versionLabel: "v2", "a": "b"}, kept: `{"customVersion":"v2","label":"v1"}`,
		},
		{name: "a version that no label takes is kept", version: long, kept: `{"customVersion":"` + long + `"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hub := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}, Spec: v1beta1.SidecarSetSpec{CustomVersion: tc.version}}
			got := &SidecarSet{}
			if err := got.ConvertFrom(hub); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Labels); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Annotations[conversiondata.NewerKey] != tc.kept {
				t.Errorf("kept %s, want %s", got.Annotations[conversiondata.NewerKey], tc.kept)
			}
		})
	}
}

func TestSidecarSetVersionToHub(t *testing.T) {
	kept := `{"customVersion":"v1"}`
	for _, tc := range []struct {
		name         string
		labels, want map[string]string
		kept         string
		version      string
	}{
		{name: "a label is a version, and stays", labels: map[string]string{versionLabel: "v1"}, version: "v1", want: map[string]string{versionLabel: "v1"}},
		{name: "a version that had no label loses it again", labels: map[string]string{versionLabel: "v1"}, kept: kept, version: "v1"},
		{name: "a label that was written since wins", labels: map[string]string{versionLabel: "v2"}, kept: kept, version: "v2", want: map[string]string{versionLabel: "v2"}},
		{name: "a label that was removed since takes the version with it", kept: kept},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, got := &SidecarSet{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}, &v1beta1.SidecarSet{}
			if tc.kept != "" {
				in.Annotations = map[string]string{conversiondata.NewerKey: tc.kept}
			}
			if err := in.ConvertTo(got); err != nil {
				t.Fatal(err)
			}
			if got.Spec.CustomVersion != tc.version {
				t.Errorf("got version %q, want %q", got.Spec.CustomVersion, tc.version)
			}
			if diff := cmp.Diff(metav1.ObjectMeta{Labels: tc.want}, got.ObjectMeta); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSidecarSetsSurviveTheirVersions(t *testing.T) {
	filler := apitest.New(7).Funcs(
		func(labels *map[string]string, c randfill.Continue) {
			c.FillNoCustom(labels)
			for _, key := range []string{versionLabel, "kubernetes.io/metadata.name"} {
				if c.Bool() {
					conversiondata.SetMetadata(labels, key, apitest.PickValue(c, "", "v1", "v2", "not a label"))
				}
			}
		},
		func(in *v1beta1.SidecarSetSpec, c randfill.Continue) {
			c.FillNoCustom(in)
			in.CustomVersion = apitest.PickValue(c, "", "v1", "v2", "not a label")
		},
		func(in *SidecarSetSpec, c randfill.Continue) {
			c.FillNoCustom(in)
			in.Namespace = apitest.PickValue(c, "", "v1", "v2")
		},
		func(in *metav1.LabelSelector, c randfill.Continue) {
			c.Fill(&in.MatchLabels)
			if c.Bool() {
				c.Fill(&in.MatchExpressions)
			}
		},
	)
	apitest.RoundTrip(t, filler, &SidecarSet{}, &v1beta1.SidecarSet{})
}
