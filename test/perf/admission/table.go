// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/audit"
	"github.com/regatta-sh/regatta/test/faults/managers"
)

// agent begins the user agent of measured requests.
const agent = "regatta-admission"

// measured is a kind of request. Its scenario is the second word of the user agent: the namespace, where that is what
// differs.
type measured struct {
	operation, scenario string
	clients             int
}

// tell makes the table from what the API server says of itself.
func tell(log string, since time.Time, clients []int) (string, error) {
	took, failed, err := durations(log, since)
	if err != nil {
		return "", err
	}
	return table(took, clients, failed), nil
}

// durations is how long the measured requests took at the API server, and how many failed.
func durations(log string, since time.Time) (took map[measured][]time.Duration, failed int, err error) {
	took = map[measured][]time.Duration{}
	err = audit.Each(log, audit.Filter{Since: since, Resource: "pods"}, func(e audit.Event) {
		words := strings.Fields(e.Agent)
		if len(words) != 3 || words[0] != agent {
			return
		}
		n, err := strconv.Atoi(words[2])
		if err != nil || e.Response.Code >= 400 {
			failed++
			return
		}
		operation := e.Verb
		if e.Object.Subresource == "eviction" {
			operation = "evict"
		}
		m := measured{operation, words[1], n}
		took[m] = append(took[m], e.Done.Sub(e.Time))
	})
	return took, failed, err
}

func table(took map[measured][]time.Duration, clients []int, failed int) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "request\tclients\trequests\twithout p50\tp99\twith p50\tp99\tadded p50\tp99\t")
	for _, operation := range []string{"create", "delete", "evict"} {
		for _, n := range clients {
			a, b := took[measured{operation, without, n}], took[measured{operation, with, n}]
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", operation, n, len(b), ms(quantile(a, 50)), ms(quantile(a, 99)),
				ms(quantile(b, 50)), ms(quantile(b, 99)), ms(quantile(b, 50)-quantile(a, 50)), ms(quantile(b, 99)-quantile(a, 99)))
		}
	}
	w.Flush()
	fmt.Fprintf(&out, "milliseconds at the API server; %d requests failed\n", failed)
	return out.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// quantile is the percent-th of a hundred, the nearest that there is.
func quantile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)-1, len(all)*percent/100)]
}

// scrape reads the metrics of managers.
func scrape(ctx context.Context, replicas []*managers.Replica, f func(name, labels string, value float64)) error {
	for _, r := range replicas {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Metrics(), nil)
		if err != nil {
			return fmt.Errorf("reading metrics: %w", err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("reading metrics: %w", err)
		}
		err = lines(response.Body, f)
		response.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// decisions is the time of the engine alone at a point, of all replicas together.
func decisions(ctx context.Context, replicas []*managers.Replica, point, about string) (string, error) {
	const metric = "regatta_decision_seconds"
	label := fmt.Sprintf("point=%q", point)
	sum, count := 0.0, 0.0
	buckets := map[float64]float64{}
	if err := scrape(ctx, replicas, func(name, labels string, value float64) {
		if !strings.Contains(labels, label) {
			return
		}
		switch name {
		case metric + "_sum":
			sum += value
		case metric + "_count":
			count += value
		case metric + "_bucket":
			_, le, _ := strings.Cut(labels, `le="`)
			if bound, err := strconv.ParseFloat(strings.TrimSuffix(le, `"`), 64); err == nil {
				buckets[bound] += value
			}
		}
	}); err != nil {
		return "", err
	}
	if count == 0 {
		return "", fmt.Errorf("the managers decided nothing")
	}
	bounds := make([]float64, 0, len(buckets))
	for b := range buckets {
		bounds = append(bounds, b)
	}
	slices.Sort(bounds)
	p99 := 0.0
	for _, b := range bounds {
		if p99 = b; buckets[b] >= 0.99*count {
			break
		}
	}
	return fmt.Sprintf("the engine's own time: %.0f decisions about %s, %.3f ms on average, 99 %% within %.2f ms\n", count, about, sum/count*1000, p99*1000), nil
}

// lines reads metrics in the text format of Prometheus.
func lines(text io.Reader, f func(name, labels string, value float64)) error {
	s := bufio.NewScanner(text)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		name, labels, text := s.Text(), "", ""
		if end := strings.LastIndexByte(name, '}'); end >= 0 {
			name, text = name[:end], name[end+1:]
			name, labels, _ = strings.Cut(name, "{")
		} else {
			name, text, _ = strings.Cut(name, " ")
		}
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("reading the metric %s: %w", name, err)
		}
		f(name, labels, value)
	}
	return s.Err()
}
