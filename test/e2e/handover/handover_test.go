// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
)

// start runs a sidecar and its hook until the test ends or it is stopped.
func start(t *testing.T, s *sidecar) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	if err := migrate(t.Context(), s.own); err != nil {
		t.Fatalf("sidecar %s: %v", s.version, err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("sidecar %s: %v", s.version, err)
		}
	}
}

// versions are the answers that a client got while act went on, in order and each of a row
// once, and how many requests failed.
func versions(t *testing.T, address string, act func()) (out []string, failed int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var text bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- ask(ctx, "http://"+address, &text) }()
	act()
	time.Sleep(300 * time.Millisecond)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if _, after, ok := strings.Cut(line, "version("); ok {
			out = append(out, strings.SplitN(after, ")", 2)[0])
		} else {
			failed++
		}
	}
	return slices.Compact(out), failed
}

func TestASidecarTakesOver(t *testing.T) {
	name := func(n int) string { return socket(fmt.Sprintf("test-%d-%s-%d", os.Getpid(), t.Name(), n)) }
	for _, tc := range []struct {
		name string
		// other is the socket that the second sidecar asks for the listener.
		other  string
		first  bool // the first one ends before the second one starts
		fails  bool
		served []string
	}{
		{name: "no request fails where the listener is handed over", other: name(1), served: []string{"v1", "v2"}},
		{name: "requests fail where the first one ends before", other: name(2), first: true, fails: true, served: []string{"v1", "v2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ports, err := addresses.AnyPorts(1)
			if err != nil {
				t.Fatal(err)
			}
			address := fmt.Sprintf("127.0.0.1:%d", ports[0])
			stop := start(t, &sidecar{version: "v1", own: name(1), other: name(0), address: address})
			var end func()
			got, failed := versions(t, address, func() {
				time.Sleep(300 * time.Millisecond)
				if tc.first {
					stop()
					time.Sleep(300 * time.Millisecond)
				}
				end = start(t, &sidecar{version: "v2", own: name(2), other: tc.other, address: address})
			})
			if !slices.Equal(got, tc.served) || (failed > 0) != tc.fails {
				t.Errorf("the versions are %v, and %d requests failed", got, failed)
			}
			end()
			if !tc.first {
				stop()
			}
		})
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	if err := run(t.Context(), []string{"serve"}); err == nil || !strings.Contains(err.Error(), "want serve VERSION") {
		t.Errorf("%v", err)
	}
}
