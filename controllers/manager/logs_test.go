// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	_ "k8s.io/component-base/logs/json/register" // as in the program
	"k8s.io/klog/v2"

	"github.com/regatta-sh/regatta/engine/bundle/gate"
)

// TestMain lets this test binary be the gate's child, a manager, and one that
// only logs a line: logs can be set up once in a process.
func TestMain(m *testing.M) {
	switch {
	case gate.IsChild():
		os.Exit(gate.ServeChild(os.Stdin, os.Stdout, os.Stderr))
	case os.Getenv("REGATTA_TEST_LOGS") != "":
		if err := logOneLine(strings.Fields(os.Getenv("REGATTA_TEST_LOGS"))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv("REGATTA_TEST_MANAGER") != "":
		if err := runManager(strings.Fields(os.Getenv("REGATTA_TEST_MANAGER"))); err != nil {
			fmt.Fprintln(os.Stderr, "kruise-manager:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func logOneLine(args []string) error {
	if _, err := parsed(args); err != nil {
		return err
	}
	klog.V(2).InfoS("hello", "who", "you")
	klog.Flush()
	return nil
}

func TestLogs(t *testing.T) {
	for name, tc := range map[string]struct {
		args  string
		fails bool
		want  func(string) bool
	}{
		"text":                   {"--v=2", false, func(s string) bool { return strings.Contains(s, `] "hello" who="you"`) }},
		"what is too detailed":   {"--v=1", false, func(s string) bool { return s == "" }},
		"JSON":                   {"--v=2 --logging-format=json", false, isJSON},
		"a format there is none": {"--logging-format=xml", true, func(s string) bool { return strings.Contains(s, `"xml"`) }},
		"two wrong flags":        {"--rest-config-qps=0 --cloneset-workers=0", true, func(s string) bool { return strings.Count(s, "want") == 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command(os.Args[0])
			command.Env = append(os.Environ(), "REGATTA_TEST_LOGS="+tc.args)
			out, err := command.CombinedOutput()
			if (err != nil) != tc.fails || !tc.want(string(out)) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func isJSON(s string) bool {
	line := map[string]any{}
	return json.Unmarshal([]byte(s), &line) == nil && line["msg"] == "hello" && line["who"] == "you"
}
