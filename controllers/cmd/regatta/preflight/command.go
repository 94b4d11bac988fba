// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// formatUpgradeCommand returns the command that upgrades the release to this chart. Without flags Helm keeps the values that users set.
// The command sets each value that this chart refuses to null, or to the part of it that this chart accepts. Helm then forgets all other
// values unless --reset-then-reuse-values keeps them. --reuse-values would keep the defaults of the other chart, too.
func (r release) formatUpgradeCommand() string {
	if r.name == "" {
		return ""
	}
	arguments := map[string]string{}
	for _, path := range r.unset {
		arguments[path] = path + "=null"
	}
	for path, value := range r.set {
		arguments[path] = path + "=" + escapeValue(value)
	}
	var flags strings.Builder
	for i, path := range slices.Sorted(maps.Keys(arguments)) { // the schema library visits values in no order
		if i == 0 {
			flags.WriteString(" --reset-then-reuse-values")
		}
		fmt.Fprintf(&flags, " --set %s", quoteForShell(arguments[path]))
	}
	// Any client that may annotate the Deployment chooses these texts.
	return fmt.Sprintf("helm upgrade %s charts/kruise --namespace %s%s", quoteForShell(r.name), quoteForShell(r.namespace), flags.String())
}

// formatTrialCommand returns the upgrade command with a flag for a dry run: Helm renders the chart with the values of the release and
// changes nothing. Preflight compares values with the schema of the chart. Its templates refuse values that contradict each other, and only
// Helm renders them.
func (r release) formatTrialCommand() string {
	if command := r.formatUpgradeCommand(); command != "" {
		return command + " --dry-run=server"
	}
	return ""
}

// formatSet writes a value as an argument that a user can copy.
func formatSet(path, value string) string {
	return "--set " + quoteForShell(path+"="+escapeValue(value))
}

// escapeValue writes a text as --set has it.
func escapeValue(text string) string {
	return strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace(text)
}

// quoteForShell quotes an argument where a shell would read it in another way.
func quoteForShell(argument string) string {
	if argument != "" && !strings.ContainsFunc(argument, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-=/:,", r)
	}) {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}

// unsetValue makes the command remove a value that users set.
func (r *release) unsetValue(path string) {
	if _, isSet := r.set[path]; !isSet && !slices.Contains(r.unset, path) {
		r.unset = append(r.unset, path)
	}
}

// setValue makes the command replace a value that users set.
func (r *release) setValue(path, value string) {
	if r.set == nil {
		r.set = map[string]string{}
	}
	r.set[path] = value
	r.unset = slices.DeleteFunc(r.unset, func(p string) bool { return p == path })
}
