// SPDX-License-Identifier: Apache-2.0

package message

import (
	"errors"
	"strings"
	"testing"
)

func TestNamesThatAreDrawnAreHidden(t *testing.T) {
	long := strings.Repeat("a", 70)
	for name, tc := range map[string]struct{ prefix, text, want string }{
		"each of them":           {"web-", `creating pod web-x7k2p: pods "web-x7k2p" is forbidden: exceeded quota`, `creating pod web-*: pods "web-*" is forbidden: exceeded quota`},
		"another name stays":     {"web-", `Service "web-other" and pod "web-x7k2pq"`, `Service "web-other" and pod "web-x7k2pq"`},
		"no regular expression":  {"a.b-", `"a.b-x7k2p" "acb-x7k2p"`, `"a.b-*" "acb-x7k2p"`},
		"a prefix that is cut":   {long + "-", `"` + long[:58] + `x7k2p"`, `"` + long[:58] + `*"`},
		"a name of no prefix":    {"", "web-x7k2p", "web-x7k2p"},
		"the same for each draw": {"web-", "pod web-bcdfg", "pod web-*"},
	} {
		cause := errors.New(tc.text)
		if got := HideDrawnName(cause, tc.prefix); got.Error() != tc.want || !errors.Is(got, cause) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
	if HideDrawnName(nil, "web-") != nil {
		t.Error("there is an error of none")
	}
}
