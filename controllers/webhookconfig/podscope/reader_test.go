// SPDX-License-Identifier: Apache-2.0

package podscope

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// spreads is a reader that has one WorkloadSpread.
type spreads struct {
	client.Reader
	uid   types.UID
	lists *int
}

func (s spreads) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	*s.lists++
	if s.uid != "" {
		list.(*kruise.WorkloadSpreadList).Items = []kruise.WorkloadSpread{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: s.uid}}}
	}
	return nil
}

// What the cache has of an object that was deleted and made again under its name a moment ago is not what pods go by.
func TestAPodGoesByTheObjectThatIsAwaited(t *testing.T) {
	for name, tc := range map[string]struct {
		cached  types.UID
		awaited []PendingSelector
		live    bool
	}{
		"nothing is awaited":                 {"old", nil, false},
		"the cache has nothing":              {"", []PendingSelector{{Kind: "WorkloadSpread", Namespace: "shop", Set: "web", UID: "new"}}, true},
		"the cache has the one before":       {"old", []PendingSelector{{Kind: "WorkloadSpread", Namespace: "shop", Set: "web", UID: "new"}}, true},
		"the cache has it":                   {"new", []PendingSelector{{Kind: "WorkloadSpread", Namespace: "shop", Set: "web", UID: "new"}}, false},
		"a claim of a replica without UIDs":  {"new", []PendingSelector{{Kind: "WorkloadSpread", Namespace: "shop", Set: "web"}}, false},
		"one of another namespace":           {"old", []PendingSelector{{Kind: "WorkloadSpread", Namespace: "plain", Set: "web", UID: "new"}}, false},
		"one of another kind":                {"old", []PendingSelector{{Kind: "PersistentPodState", Namespace: "shop", Set: "web", UID: "new"}}, false},
		"so many that none is named anymore": {"new", []PendingSelector{{}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := 0, 0
			r := Reader{Reader: spreads{uid: tc.cached, lists: &cached}, Live: spreads{uid: "new", lists: &live}, Claims: func(context.Context, string) ([]PendingSelector, error) { return tc.awaited, nil }}
			list := &kruise.WorkloadSpreadList{}
			if err := r.List(context.WithValue(t.Context(), tokenKey{}, "t"), list, client.InNamespace("shop")); err != nil {
				t.Fatal(err)
			}
			want := tc.cached
			if tc.live {
				want = "new"
			}
			if len(list.Items) != 1 || list.Items[0].UID != want || (live > 0) != tc.live {
				t.Errorf("got %v after %d live lists", list.Items, live)
			}
		})
	}
}
