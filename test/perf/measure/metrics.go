// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/regatta-sh/regatta/test/perf/target"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// reconciles is how often the controller of a kind has reconciled, nil where
// its metrics are not known.
func reconciles(ctx context.Context, t *target.Target, kind workload.Kind) (*float64, error) {
	if t.Metrics == "" || kind.Name != workload.CloneSet().Name {
		return nil, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Metrics, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading the metrics: %s answers %s", t.Metrics, response.Status)
	}
	return sum(response.Body, "controller_runtime_reconcile_total", "cloneset")
}

// sum adds up a metric over the label sets in which a word occurs.
func sum(text io.Reader, metric, word string) (*float64, error) {
	total := 0.0
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), metric+"{")
		if !ok || !strings.Contains(labels, word) {
			continue
		}
		n, err := strconv.ParseFloat(labels[strings.LastIndexByte(labels, ' ')+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("reading the metric %s: %w", metric, err)
		}
		total += n
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	return &total, nil
}
