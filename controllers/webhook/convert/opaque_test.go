// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpaqueFields(t *testing.T) {
	opaque := []string{"template.jobTemplate", "volumes"}
	for _, tc := range []struct{ name, in, rest, changed, want string }{
		{"fields anywhere in the spec", `{"spec":{"a":1,"volumes":[1],"template":{"jobTemplate":{"x":1},"b":2}}}`, `{"spec":{"a":1,"template":{"b":2}}}`, "", `{"spec":{"a":1,"volumes":[1],"template":{"b":2,"jobTemplate":{"x":1}}}}`},
		{"what encoding adds goes", `{"spec":{"template":{"b":2}}}`, `{"spec":{"template":{"b":2}}}`, `{"spec":{"volumes":null,"template":{"b":2,"jobTemplate":{}}}}`, `{"spec":{"template":{"b":2}}}`},
		{"there is nothing to have it", `{"spec":{"template":null}}`, `{"spec":{"template":null}}`, "", `{"spec":{"template":null}}`},
		{"there is no spec", `{"a":1}`, `{"a":1}`, "", `{"a":1}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rest, kept, err := extractOpaque([]byte(tc.in), opaque)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value(t, tc.rest), value(t, string(rest))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tc.changed != "" {
				rest = []byte(tc.changed)
			}
			got, err := restoreOpaque(rest, kept, opaque)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value(t, tc.want), value(t, string(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, _, err := extractOpaque([]byte(`{"spec":{"template":3}}`), opaque); err == nil || !strings.Contains(err.Error(), "reading template") {
		t.Errorf("got %v", err)
	}
}
