// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const log = `{"verb":"patch","user":{"username":"manager"},"objectRef":{"resource":"pods","subresource":"status","namespace":"a"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:01Z"}
{"verb":"patch","user":{"username":"manager"},"objectRef":{"resource":"pods","subresource":"status","namespace":"b"},"responseStatus":{"code":409},"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}
{"verb":"create","requestURI":"/api/v1/namespaces/a/pods?dryRun=All","user":{"username":"manager"},"objectRef":{"resource":"pods","namespace":"a"},"responseStatus":{"code":409},"requestReceivedTimestamp":"2026-01-01T00:00:03Z"}
{"verb":"create","user":{"username":"kwok"},"objectRef":{"resource":"leases","namespace":"a"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-01T00:00:04Z"}
{"verb":"create","user":{"usern`

func TestCount(t *testing.T) {
	statuses := Count{User: "manager", Verb: "patch", Resource: "pods/status", Writes: 2, Failed: 1}
	pods := Count{User: "manager", Verb: "create", Resource: "pods", Writes: 1, DryRuns: 1}
	leases := Count{User: "kwok", Verb: "create", Resource: "leases", Writes: 1}
	second := func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }
	tests := []struct {
		name   string
		filter Filter
		want   []Count
	}{
		{"all writes, the most frequent first", Filter{}, []Count{statuses, leases, pods}},
		{"those of a user", Filter{User: "manager"}, []Count{statuses, pods}},
		{"those of a resource, with its subresources", Filter{Resource: "pods"}, []Count{statuses, pods}},
		{"those in a namespace", Filter{Namespace: "b"}, []Count{{User: "manager", Verb: "patch", Resource: "pods/status", Writes: 1, Failed: 1}}},
		{"those from a moment on, and before another", Filter{Since: second(3), Until: second(4)}, []Count{pods}},
		{"none", Filter{User: "nobody"}, []Count{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := count(strings.NewReader(log), test.filter)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if total := Total([]Count{statuses, pods}); total != 3 {
		t.Errorf("they add up to %d", total)
	}
}

func TestCountRefusesWhatIsNoLog(t *testing.T) {
	if _, err := count(strings.NewReader("hello\n"), Filter{}); err == nil {
		t.Error("no error")
	}
	if _, err := Counts("/nonexistent", Filter{}); err == nil {
		t.Error("no error for a missing file")
	}
}
