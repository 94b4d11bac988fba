package policies_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var regoBlock = regexp.MustCompile("(?s)```rego\n(.*?)```")

// TestPoliciesOfTheGuideAreGood compiles what the guide shows, and runs its tests.
func TestPoliciesOfTheGuideAreGood(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	modules := builtinModules(t)
	for i, block := range regoBlock.FindAllStringSubmatch(string(text), -1) {
		name := fmt.Sprintf("README.md-%d.rego", i)
		if strings.Contains(block[1], "\ntest_") {
			name = fmt.Sprintf("README.md-%d_test.rego", i)
		}
		modules[name] = parse(t, name, block[1])
	}
	for name, file := range runRego(t, modules).Files {
		if strings.HasSuffix(name, "_test.rego") && file.NotCoveredLines > 0 {
			t.Errorf("%s was not run as a whole", name)
		}
	}
}
