// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTell(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	line := func(agent, verb, sub string, code string, millis string) string {
		return `{"verb":"` + verb + `","userAgent":"` + agent + `","objectRef":{"resource":"pods","subresource":"` + sub + `"},"responseStatus":{"code":` + code +
			`},"requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z","stageTimestamp":"2026-01-02T03:04:05.` + millis + `000Z"}` + "\n"
	}
	text := line("regatta-admission protected 10", "delete", "", "200", "012") + line("regatta-admission switched-off 10", "delete", "", "200", "004") +
		line("regatta-admission protected 10", "create", "eviction", "201", "020") + line("regatta-admission protected 10", "delete", "", "403", "100") +
		line("kubectl/v1", "delete", "", "200", "500")
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := tell(log, time.Time{}, []int{10})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"delete 10 1 4.0 4.0 12.0 12.0 8.0 8.0", "evict 10 1 0.0 0.0 20.0", "1 requests failed",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

func TestQuantile(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(199-i))
	}
	if a, b, c := quantile(all, 50), quantile(all, 99), quantile(nil, 50); a != 100 || b != 198 || c != 0 {
		t.Errorf("got %d, %d and %d", a, b, c)
	}
}

func TestLines(t *testing.T) {
	var got []string
	err := lines(strings.NewReader("# HELP x y\nplain 1\na_sum{point=\"p\"} 2.5\na_bucket{le=\"0.1\"} 3\n"), func(name, labels string, value float64) {
		got = append(got, name+" "+labels)
	})
	if err != nil || strings.Join(got, "; ") != `plain ; a_sum point="p"; a_bucket le="0.1"` {
		t.Errorf("%v %v", got, err)
	}
	if err := lines(strings.NewReader("a{} x\n"), func(string, string, float64) {}); err == nil {
		t.Error("what is no number is read")
	}
}
