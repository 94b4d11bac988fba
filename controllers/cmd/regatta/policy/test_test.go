// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy"
	"github.com/regatta-sh/regatta/policies"
)

const half = `package extend.rollout.half

hold contains {"reason": "R", "message": "m"} if input.update > 5

rank := {} if input.update > 7
`

func TestMinimumsAndReports(t *testing.T) {
	for name, tc := range map[string]struct {
		types string
		code  int
		want  string
	}{
		"a minimum that is reached":      {"test half --min 50", 0, "coverage: 50.0 % of 2 lines\n"},
		"a minimum that is not":          {"test half --min 90", 1, "half.rego:5: no test evaluates this\ncoverage: 50.0 % of 2 lines\nError: tests evaluate 50.0 % of the lines, and 90 % are wanted\n"},
		"a minimum without any test":     {"test none --min 1", 1, "Error: tests evaluate 0.0 % of the lines, and 1 % are wanted\n"},
		"a minimum that is none":         {"test half --min 101", 2, "--min is a percentage"},
		"a policy that does not compile": {"test wrong -o junit", 1, `<testcase classname="wrong" name="schemas" time="`},
		"tests as JUnit":                 {"test half -o junit", 0, `<testcase classname="extend.rollout.half_test" name="test_it" file="half/half_test.rego" time="`},
		"a test that fails as JUnit":     {"test bad -o junit", 1, `<failure message="failed">failed</failure>`},
		"a test that is skipped":         {"test skipped -o junit", 0, "<skipped></skipped>"},
		"a case that fails as JUnit":     {"test cased -o junit", 1, `<failure message="limit is 0, want 2">limit is 0, want 2</failure>`},
		"tests as JSON":                  {"test half -o json", 0, `"name": "extend.rollout.half_test.test_it"`},
		"JUnit whenever a file changes":  {"test half -o junit --watch", 2, "--watch prints text only"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthor(t)
			a.write("half/half.rego", half)
			a.write("half/half_test.rego", "package extend.rollout.half_test\ntest_it if count(data.extend.rollout.half.hold) == 1 with input as {\"update\": 6}")
			a.write("none/none.rego", half)
			a.write("wrong/wrong.rego", strings.ReplaceAll(half, "input.update", "input.updat"))
			a.write("bad/bad.rego", half)
			a.write("bad/bad_test.rego", "package extend.rollout.half_test\ntest_it if false")
			a.write("skipped/skipped.rego", half)
			a.write("skipped/skipped_test.rego", "package extend.rollout.half_test\ntodo_test_it if false")
			a.write("cased/cased.rego", half)
			a.write("cased/cases/x.yaml", "cases: [{name: one is two, point: rollout/plan, input: {update: 1}, want: {limit: 2}}]")
			got, code := a.types(tc.types)
			if code != tc.code || !strings.Contains(got, tc.want) {
				t.Errorf("it ended with %d, want %d\n%s\nwant\n%s", code, tc.code, got, tc.want)
			}
			if text, _, _ := strings.Cut(got, "Error:"); code < 2 && strings.Contains(tc.types, "junit") {
				if err := xml.Unmarshal([]byte(text), new(struct{ XMLName xml.Name })); err != nil {
					t.Errorf("it is no XML: %v\n%s", err, text)
				}
			}
		})
	}
}

// screen is written by one goroutine and read by another.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestWatchRunsThemAgain(t *testing.T) {
	a := newAuthor(t)
	a.write("half/half.rego", half)
	a.write("half/half_test.rego", "package extend.rollout.half_test\ntest_it if false")
	ctx, interrupt := context.WithCancel(t.Context())
	out, done := &screen{}, make(chan error, 1)
	cmd := policy.New(policies.Builtin)
	cmd.SetOut(out)
	cmd.SetArgs([]string{"test", "half", "--watch"})
	go func() { done <- cmd.ExecuteContext(ctx) }()
	sees := func(want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			if strings.Contains(out.String(), want) {
				return
			}
			time.Sleep(25 * time.Millisecond)
		}
		t.Fatalf("there is no %q in\n%s", want, out)
	}
	sees("0 of 1 test passed, 0 cases run\nError: tests failed\n")
	a.write("half/half_test.rego", "package extend.rollout.half_test\ntest_it if true")
	sees("1 of 1 test passed, 0 cases run\n")
	a.write("half/cases/x.yaml", "cases: [{name: one is two, point: rollout/plan, input: {update: 1}, want: {limit: 2}}]")
	sees("half/cases/x.yaml:1:9: one is two: limit is 0, want 2\n")
	if err := os.Remove("half/cases/x.yaml"); err != nil {
		t.Fatal(err)
	}
	sees("want 2\n1 of 1 test passed, 1 case run\nError: tests failed\n1 of 1 test passed, 0 cases run\n")
	interrupt()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
