// SPDX-License-Identifier: Apache-2.0

package conversiondata

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type kept struct {
	Name  string   `json:"name,omitempty"`
	Words []string `json:"words,omitempty"`
}

func TestKeepAndTake(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields kept
		before map[string]string
		want   map[string]string
	}{
		{name: "fields become an annotation", fields: kept{Name: "a"}, want: map[string]string{NewerKey: `{"name":"a"}`}},
		{name: "other annotations stay", fields: kept{Words: []string{"b"}}, before: map[string]string{"x": "y"}, want: map[string]string{"x": "y", NewerKey: `{"words":["b"]}`}},
		{name: "no field is no annotation"},
		{name: "no field removes what was kept before", before: map[string]string{NewerKey: `{"name":"old"}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			annotations := tc.before
			if err := StoreFields(&annotations, NewerKey, tc.fields); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, annotations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var got kept
			if found := RestoreFields(&annotations, NewerKey, &got); found != (tc.want[NewerKey] != "") {
				t.Errorf("found %v", found)
			}
			if diff := cmp.Diff(tc.fields, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, left := annotations[NewerKey]; left {
				t.Error("the annotation is still there")
			}
		})
	}
}

func TestWhatCannotBeReadStays(t *testing.T) {
	annotations := map[string]string{NewerKey: "[]"}
	if RestoreFields(&annotations, NewerKey, &kept{}) || annotations[NewerKey] != "[]" {
		t.Errorf("got %v", annotations)
	}
	if err := StoreFields(&annotations, NewerKey, func() {}); err == nil {
		t.Error("a function was kept")
	}
}
