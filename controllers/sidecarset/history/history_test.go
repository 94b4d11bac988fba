// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/apiserver"
)

func TestWhichRevisionIsNamed(t *testing.T) {
	of := func(namespace, set, name, version string, number int64) client.Object {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			kruise.SidecarSetNameKey: set, kruise.SidecarSetCustomVersionKey: version,
		}}, Revision: number}
	}
	c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(
		of("kruise-system", "logs", "logs-a", "v1", 12), of("kruise-system", "logs", "logs-b", "v1", 2), of("kruise-system", "logs", "logs-c", "v1", 9),
		of("kruise-system", "logs", "logs-d", "v2", 13), of("kruise-system", "logs", "logs-e", "", 1),
		of("kruise-system", "mesh", "mesh-a", "v1", 20), of("kruise-system", "mesh", "mesh-b", "v3", 20), of("shop", "logs", "logs-f", "v1", 30),
	).Build()
	all, err := List(t.Context(), c, "kruise-system", "logs")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		version, revision *string
		want              string
	}{
		"the newest of a version":                          {ptr.To("v1"), nil, "logs-a"},
		"the only one of a version":                        {ptr.To("v2"), nil, "logs-d"},
		"by the name":                                      {nil, ptr.To("logs-b"), "logs-b"},
		"the version goes before the name of a newer one":  {ptr.To("v1"), ptr.To("logs-d"), "logs-a"},
		"the version goes before the name of an older one": {ptr.To("v1"), ptr.To("logs-b"), "logs-a"},
		"by the name where none has the version":           {ptr.To("v3"), ptr.To("logs-b"), "logs-b"},
		"an empty version is none":                         {ptr.To(""), ptr.To("logs-b"), "logs-b"},
		"no revision has the version":                      {ptr.To("v3"), nil, ""},
		"no revision has the name":                         {nil, ptr.To("mesh-a"), ""},
		"neither":                                          {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := &kruise.SidecarSetInjectRevision{CustomVersion: tc.version, RevisionName: tc.revision}
			got := ""
			if r := FindRevision(all, want); r != nil {
				got = r.Name
			}
			if got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
	if FindRevision(all, nil) != nil {
		t.Error("one is named by no strategy")
	}
}
