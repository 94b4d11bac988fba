// SPDX-License-Identifier: Apache-2.0

package notimplemented

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/regatta-sh/regatta/controllers/api"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := api.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKindsAreThoseThatAreStored(t *testing.T) {
	versions := map[string]int{}
	for _, kind := range Kinds(scheme(t), "CloneSet", "ClusterPolicyBundle", "PolicyBundle") {
		versions[kind.Version]++
		if kind.Kind == "CloneSet" {
			t.Error("CloneSet has a controller")
		}
	}
	if diff := cmp.Diff(map[string]int{"v1alpha1": 3, "v1beta1": 14}, versions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStatusHasWhatItsSchemaWants(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	told := func(kind string, fields ...any) map[string]any {
		c := map[string]any{
			"type": "Stalled", "status": "True", "reason": "NotImplemented", "lastTransitionTime": "2026-11-21T08:00:00Z",
			"message": "Regatta stores and checks this " + kind + ", but does not act on it yet.",
		}
		for i := 0; i < len(fields); i += 2 {
			c[fields[i].(string)] = fields[i+1]
		}
		return c
	}
	for _, tc := range []struct {
		name, kind string
		status     map[string]any
		want       map[string]any
	}{
		{
			name: "an empty status gets its required numbers", kind: "SidecarSet",
			want: map[string]any{"matchedPods": int64(0), "updatedPods": int64(0), "readyPods": int64(0), "conditions": []any{told("SidecarSet", "observedGeneration", int64(3))}},
		},
		{
			name: "what is there stays, and conditions have the fields of their kind", kind: "BroadcastJob",
			status: map[string]any{"active": int64(2), "conditions": []any{map[string]any{"type": "Failed", "status": "False"}}},
			want: map[string]any{"active": int64(2), "succeeded": int64(0), "failed": int64(0), "desired": int64(0), "conditions": []any{
				map[string]any{"type": "Failed", "status": "False"}, told("BroadcastJob"),
			}},
		},
		{
			name: "a request has a phase", kind: "ContainerRecreateRequest",
			want: map[string]any{"phase": "Pending", "conditions": []any{told("ContainerRecreateRequest", "observedGeneration", int64(3))}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1beta1", "kind": tc.kind}}
			object.SetGeneration(3)
			if tc.status != nil {
				object.Object["status"] = tc.status
			}
			got, err := statusOf(scheme(t), object, now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			object.Object["status"] = got
			if !stalled(object) {
				t.Error("it does not see its own condition")
			}
		})
	}
}
