// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/regatta-sh/regatta/test/cluster/audit"
	"github.com/regatta-sh/regatta/test/perf/stand"
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
func scrape(ctx context.Context, urls []string, f func(name, labels string, value float64)) error {
	for _, url := range urls {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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

// histogram is one of seconds, of all that were scraped together.
type histogram struct {
	name, label string
	sum, count  float64
	buckets     map[float64]float64
}

// histogramOf is the one of a metric with a label, such as point="rollout/order"; of all without one.
func histogramOf(name, label string) *histogram {
	return &histogram{name: name, label: label, buckets: map[float64]float64{}}
}

func (h *histogram) add(name, labels string, value float64) {
	if !strings.Contains(labels, h.label) {
		return
	}
	switch name {
	case h.name + "_sum":
		h.sum += value
	case h.name + "_count":
		h.count += value
	case h.name + "_bucket":
		_, le, _ := strings.Cut(labels, `le="`)
		le, _, _ = strings.Cut(le, `"`)
		if bound, err := strconv.ParseFloat(le, 64); err == nil {
			h.buckets[bound] += value
		}
	}
}

func (h *histogram) String() string {
	if h.count == 0 {
		return "none"
	}
	p99 := 0.0
	for _, p99 = range slices.Sorted(maps.Keys(h.buckets)) {
		if h.buckets[p99] >= 0.99*h.count {
			break
		}
	}
	return fmt.Sprintf("%.0f, %.3f ms on average, 99 %% within %.2f ms", h.count, h.sum/h.count*1000, p99*1000)
}

// decisions is the time of the engine alone at a point, of all managers together.
func decisions(ctx context.Context, urls []string, point, about string) (string, error) {
	h := histogramOf("regatta_decision_seconds", fmt.Sprintf("point=%q", point))
	if err := scrape(ctx, urls, h.add); err != nil {
		return "", err
	}
	if h.count == 0 {
		return "", errors.New("the managers decided nothing")
	}
	return fmt.Sprintf("decisions about %s, the engine's own time: %s\n", about, h), nil
}

// calls is the time of mutating webhooks of pods, in the managers and as the API server waits for them.
func calls(ctx context.Context, s *stand.Stand) (string, error) {
	inManager := histogramOf("controller_runtime_webhook_latency_seconds", `webhook="/mutate-pod`)
	if err := scrape(ctx, s.Target.Metrics, inManager.add); err != nil {
		return "", err
	}
	k8s, err := kubernetes.NewForConfig(s.Target.Config)
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	text, err := k8s.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	atServer := histogramOf("apiserver_admission_webhook_admission_duration_seconds", `name="mpod`)
	if err := lines(bytes.NewReader(text), atServer.add); err != nil {
		return "", err
	}
	return fmt.Sprintf("calls of the webhook, in the manager: %s\n as the API server waited: %s\n", inManager, atServer), nil
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
