// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/metrics"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/record/sink"
)

func TestSinksAreCounted(t *testing.T) {
	s := sink.New("stdout", record.NewEncoder(), sink.NewStream(&bytes.Buffer{}))
	s.RecordDecision(decision.Record{ID: 1})
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.RecordDecision(decision.Record{ID: 2})
	want := `
# HELP regatta_decision_log_records_total Records of decisions, by where they are sent and by what became of them: written, dropped for want of room, or failed.
# TYPE regatta_decision_log_records_total counter
regatta_decision_log_records_total{result="dropped",sink="stdout"} 1
regatta_decision_log_records_total{result="failed",sink="stdout"} 0
regatta_decision_log_records_total{result="written",sink="stdout"} 1
`
	if err := testutil.CollectAndCompare(metrics.NewLogs(s), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
