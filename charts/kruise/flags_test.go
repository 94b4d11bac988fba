// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/nodeagent/agent"
)

// parseManagerFlags reads arguments as the manager does.
func parseManagerFlags(t *testing.T, args []string) *pflag.FlagSet {
	t.Helper()
	options, err := manager.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("kruise-manager", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	return flags
}

// The manager of this checkout knows every flag that the chart gives it.
func TestTheManagerKnowsItsFlags(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--set", "manager.pprofAddr=,manager.loggingFormat=json,manager.resyncPeriod=10h"},
		{"--set", `featureGates=AllAlpha=true\,ResourcesDeletionProtection=false`},
		decisionsToEverywhere(),
		verified(),
	} {
		parseManagerFlags(t, container(t, render(t, args...)).Args)
	}
}

// A default that the chart gives is that of the program, so that a values file which leaves it out changes nothing.
func TestTunedDefaultsAreThoseOfTheManager(t *testing.T) {
	flags := parseManagerFlags(t, container(t, render(t)).Args)
	for _, name := range []string{"rest-config-qps", "rest-config-burst", "leader-election-lease-duration", "leader-election-renew-deadline", "leader-election-retry-period"} {
		if f := flags.Lookup(name); !f.Changed || f.Value.String() != f.DefValue {
			t.Errorf("--%s is %s, by default %s", name, f.Value, f.DefValue)
		}
	}
}

// Every controller has a value for its workers, and no other has.
func TestEveryControllerHasWorkers(t *testing.T) {
	data, err := os.ReadFile("values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type node struct{ Properties map[string]json.RawMessage }
	var schema struct {
		Properties struct {
			Manager struct{ Properties struct{ Workers node } }
		}
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	values := map[string]int{}
	for name := range schema.Properties.Manager.Properties.Workers.Properties {
		values[name] = 7
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	parseManagerFlags(t, container(t, render(t, "--set-json", "manager.workers="+string(text))).Args).VisitAll(func(f *pflag.Flag) {
		if strings.HasSuffix(f.Name, "-workers") && f.Value.String() != "7" {
			t.Errorf("no value is for --%s", f.Name)
		}
	})
}

// namesOfFlags are the flags that a document of the chart has, without those of workers.
func namesOfFlags(document string) []string {
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^ +- [\"']?--([a-z0-9-]+)`).FindAllStringSubmatch(document, -1) {
		if !strings.HasSuffix(match[1], "-workers") {
			names[match[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// valuesOfFlags are the flags that values are for, by a file of the chart, and the values.
func valuesOfFlags(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]string{}
	if err := yaml.UnmarshalStrict(text, &from); err != nil || len(from) == 0 {
		t.Fatalf("%s: %v", file, err)
	}
	return from
}

// Each flag of a program comes from a value, or may be given in extraArgs.
func TestEveryFlagCanBeSet(t *testing.T) {
	known := values(t)
	fixed := []string{"enable-leader-election", "policy-dir"} // an update has two managers; the volume is mounted there
	rendered := []map[string]string{documents(t, together()), documents(t, apart()), documents(t, tuned()), documents(t, map[string]effect{"manager.pprofAddr": {value: `""`}})}
	ofManager, err := manager.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	ofAgent, err := agent.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []struct {
		options             interface{ AddFlags(*pflag.FlagSet) }
		file, of, extraArgs string
	}{
		{ofManager, "files/manager-values.yaml", managerOf, "manager.extraArgs"},
		{ofAgent, "files/daemon-values.yaml", agentOf, "daemon.extraArgs"},
	} {
		from, given := valuesOfFlags(t, program.file), map[string]bool{}
		for _, release := range rendered {
			for _, name := range namesOfFlags(release[program.of]) {
				given[name] = true
			}
		}
		var extra []string
		flags := pflag.NewFlagSet(program.of, pflag.ContinueOnError)
		program.options.AddFlags(flags)
		flags.VisitAll(func(f *pflag.Flag) {
			value := from[f.Name]
			isValue := func(leaf string) bool {
				return leaf == value || strings.HasPrefix(leaf, value+".") || strings.HasPrefix(value, leaf+".")
			}
			switch {
			case value == "":
				extra = append(extra, "--"+f.Name+"=1")
			case value == "fixed" && !slices.Contains(fixed, f.Name), value != "" && value != "fixed" && !slices.ContainsFunc(slices.Collect(maps.Keys(known)), isValue):
				t.Errorf("%s: --%s cannot be set: %q is no value", program.of, f.Name, value)
			}
		})
		sets := documents(t, map[string]effect{program.extraArgs: {value: string(mustMarshal(t, extra))}})[program.of]
		for _, arg := range extra {
			if !strings.Contains(sets, arg) {
				t.Errorf("%s: %s cannot be set", program.of, arg)
			}
		}
		// What the chart gives is refused in extraArgs; these were given there.
		delete(given, "expectation-timeout")
		delete(given, "log-flush-frequency")
		delete(from, "concurrent-cloneset-syncs") // the same as one of the workers
		delete(from, "plugin-bin-dir")            // the values are where it is mounted from
		delete(from, "plugin-config-file")
		maps.DeleteFunc(from, func(flag, _ string) bool { return strings.HasSuffix(flag, "-workers") }) // of values without a default
		if diff := cmp.Diff(slices.Sorted(maps.Keys(from)), slices.Sorted(maps.Keys(given))); diff != "" {
			t.Errorf("%s: flags that values are for (-), and that the chart gives (+):\n%s", program.of, diff)
		}
	}
}

func mustMarshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
