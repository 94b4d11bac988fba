// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// writeUpgradeCommand returns what changes the release over. Without flags Helm keeps the values that users set. What this chart refuses is set to null, or to what of it this
// chart takes. Helm then forgets all other values unless --reset-then-reuse-values keeps them; --reuse-values would keep the defaults of
// the other chart, too.
func (r release) writeUpgradeCommand() string {
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
	for i, path := range slices.Sorted(maps.Keys(arguments)) { // the schema's library looks at values in no order
		if i == 0 {
			flags.WriteString(" --reset-then-reuse-values")
		}
		fmt.Fprintf(&flags, " --set %s", quoteForShell(arguments[path]))
	}
	// Any client that may annotate the Deployment chooses these texts.
	return fmt.Sprintf("helm upgrade %s charts/kruise --namespace %s%s", quoteForShell(r.name), quoteForShell(r.namespace), flags.String())
}

// writeTrialCommand returns the command so that Helm renders the chart with the values of the release and changes nothing. Preflight compares values with the schema
// of the chart; those that contradict each other are refused by its templates, which Helm alone renders.
func (r release) writeTrialCommand() string {
	if command := r.writeUpgradeCommand(); command != "" {
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

// unsetValue has the command take a value away that users set.
func (r *release) unsetValue(path string) {
	if _, isSet := r.set[path]; !isSet && !slices.Contains(r.unset, path) {
		r.unset = append(r.unset, path)
	}
}

// setValue has the command give another value than users set.
func (r *release) setValue(path, value string) {
	if r.set == nil {
		r.set = map[string]string{}
	}
	r.set[path] = value
	r.unset = slices.DeleteFunc(r.unset, func(p string) bool { return p == path })
}
