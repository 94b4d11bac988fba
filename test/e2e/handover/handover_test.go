// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega/gbytes"

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

// answers are what a client prints.
type answers struct{ *gbytes.Buffer }

// read returns the versions that the client got, in order and each of a row once, and how many
// requests failed.
func (a *answers) read() (versions []string, failed int) {
	for line := range strings.Lines(string(a.Contents())) {
		if _, after, ok := strings.Cut(line, "version("); ok {
			versions = append(versions, strings.SplitN(after, ")", 2)[0])
		} else {
			failed++
		}
	}
	return slices.Compact(versions), failed
}

// serves waits until the client's last answer came from the version.
func (a *answers) serves(t *testing.T, version string) {
	t.Helper()
	a.until(t, "an answer from "+version, func(versions []string, _ int) bool {
		return len(versions) > 0 && versions[len(versions)-1] == version
	})
}

// until waits until the client has got what done looks for.
func (a *answers) until(t *testing.T, what string, done func(versions []string, failed int) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(a.read()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			versions, failed := a.read()
			t.Fatalf("waited %s for %s: the versions are %v, and %d requests failed", patience, what, versions, failed)
		}
	}
}

// client asks the address until the test ends.
func client(t *testing.T, address string) *answers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := &answers{gbytes.NewBuffer()}, make(chan error, 1)
	go func() { ended <- ask(ctx, "http://"+address, out) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return out
}

func TestASidecarTakesOver(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first bool // the first one ends before the second one starts
	}{
		{name: "no request fails where the listener is handed over"},
		{name: "requests fail where the first one ends before", first: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// The sockets of a case are its own: those of an ended sidecar close some time after it.
			name := func(n int) string { return socket(fmt.Sprintf("test-%d-%s-%d", os.Getpid(), t.Name(), n)) }
			ports, err := addresses.AnyPorts(1)
			if err != nil {
				t.Fatal(err)
			}
			address := fmt.Sprintf("127.0.0.1:%d", ports[0])
			stop := start(t, &sidecar{version: "v1", own: name(1), other: name(0), address: address})
			got := client(t, address)
			got.serves(t, "v1")
			other := name(1)
			if tc.first {
				stop()
				got.until(t, "a request that fails", func(_ []string, failed int) bool { return failed > 0 })
				other = name(2)
			}
			end := start(t, &sidecar{version: "v2", own: name(2), other: other, address: address})
			got.serves(t, "v2")
			versions, failed := got.read()
			if !slices.Equal(versions, []string{"v1", "v2"}) || (failed > 0) != tc.first {
				t.Errorf("the versions are %v, and %d requests failed", versions, failed)
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
