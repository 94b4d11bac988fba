// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

func TestModesOfPullSecrets(t *testing.T) {
	batch := func(name string) v1beta1.ReferenceObject {
		return v1beta1.ReferenceObject{Namespace: "ns", Name: name, Mode: v1beta1.PullSecretModeBatch}
	}
	plain := func(name string) v1beta1.ReferenceObject { return v1beta1.ReferenceObject{Namespace: "ns", Name: name} }
	secret := func(name string) ReferenceObject { return ReferenceObject{Namespace: "ns", Name: name} }
	const keptAB = `{"pullSecrets":{"nginx":[{"namespace":"ns","name":"a","mode":"batch"},{"namespace":"ns","name":"b"}]}}`
	for _, tc := range []struct {
		name    string
		hub     []v1beta1.ReferenceObject
		kept    string
		written []ReferenceObject // nil: as it came
		want    []v1beta1.ReferenceObject
	}{
		{name: "no mode needs no annotation", hub: []v1beta1.ReferenceObject{plain("a")}, want: []v1beta1.ReferenceObject{plain("a")}},
		{name: "a mode comes back", hub: []v1beta1.ReferenceObject{batch("a"), plain("b")}, kept: keptAB, want: []v1beta1.ReferenceObject{batch("a"), plain("b")}},
		{
			name: "a secret that is there twice has its mode where it was", hub: []v1beta1.ReferenceObject{plain("a"), batch("a")},
			kept: `{"pullSecrets":{"nginx":[{"namespace":"ns","name":"a"},{"namespace":"ns","name":"a","mode":"batch"}]}}`,
			want: []v1beta1.ReferenceObject{plain("a"), batch("a")},
		},
		{
			name: "secrets that a client moved take their modes along, and a new one has none", hub: []v1beta1.ReferenceObject{batch("a"), plain("b")}, kept: keptAB,
			written: []ReferenceObject{secret("c"), secret("b"), secret("a")},
			want:    []v1beta1.ReferenceObject{plain("c"), plain("b"), batch("a")},
		},
		{
			name: "a secret that a client removed is gone", hub: []v1beta1.ReferenceObject{batch("a"), plain("b")}, kept: keptAB,
			written: []ReferenceObject{secret("b")}, want: []v1beta1.ReferenceObject{plain("b")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hub := &v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"nginx": {PullSecrets: tc.hub}}}}
			old := apitest.ConvertFromHub[NodeImage](t, hub)
			if got := old.Annotations[conversiondata.NewerKey]; got != tc.kept {
				t.Errorf("kept %s, want %s", got, tc.kept)
			}
			if tc.written != nil {
				old.Spec.Images["nginx"] = ImageSpec{PullSecrets: tc.written}
			}
			got := apitest.Hub[v1beta1.NodeImage](t, old)
			if diff := cmp.Diff(tc.want, got.Spec.Images["nginx"].PullSecrets); diff != "" {
				t.Errorf("secrets (-want +got):\n%s", diff)
			}
			if got.Annotations != nil {
				t.Errorf("annotations %v are left", got.Annotations)
			}
		})
	}
}

// nodeImageFiller draws secrets from so few that some are there twice.
func nodeImageFiller(seed int64) *randfill.Filler {
	return apitest.NewWithAnnotations(seed, nil, func(secret *v1beta1.ReferenceObject, c randfill.Continue) {
		*secret = v1beta1.ReferenceObject{
			Namespace: []string{"", "x"}[c.Intn(2)], Name: []string{"", "a", "b"}[c.Intn(3)],
			Mode: []v1beta1.PullSecretMode{"", v1beta1.PullSecretModeBatch, "odd"}[c.Intn(3)],
		}
	})
}

func TestNodeImagesSurviveTheOtherVersion(t *testing.T) {
	apitest.RoundTrip(t, nodeImageFiller(4), &NodeImage{}, &v1beta1.NodeImage{})
}
