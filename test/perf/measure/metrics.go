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
)

// reconciles is how often each controller of the managers has reconciled, by the
// names of the controllers; nil where no metrics are known.
func reconciles(ctx context.Context, urls []string) (map[string]float64, error) {
	if len(urls) == 0 {
		return nil, nil
	}
	totals := map[string]float64{}
	for _, url := range urls {
		if err := scrape(ctx, url, totals); err != nil {
			return nil, fmt.Errorf("reading the metrics: %w", err)
		}
	}
	return totals, nil
}

func scrape(ctx context.Context, url string, into map[string]float64) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return sum(response.Body, "controller_runtime_reconcile_total", "controller", into)
}

// sum adds up a metric by the values of one of its labels.
func sum(text io.Reader, metric, label string, into map[string]float64) error {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), metric+"{")
		if !ok {
			continue
		}
		_, rest, ok := strings.Cut(labels, label+`="`)
		if !ok {
			continue
		}
		value, _, _ := strings.Cut(rest, `"`)
		n, err := strconv.ParseFloat(labels[strings.LastIndexByte(labels, ' ')+1:], 64)
		if err != nil {
			return fmt.Errorf("metric %s: %w", metric, err)
		}
		into[value] += n
	}
	return lines.Err()
}

// growth is by how much counts have grown, of those that have.
func growth(before, after map[string]float64) map[string]float64 {
	grown := map[string]float64{}
	for name, n := range after {
		if n > before[name] {
			grown[name] = n - before[name]
		}
	}
	return grown
}
