// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"

	chart "github.com/regatta-sh/regatta/charts/kruise"
	"github.com/regatta-sh/regatta/controllers/features"
)

// compareFlags reports which flags and gates of the running manager differ. The chart sets the flags
// that its values name, and none that were added to the Deployment by hand.
func (l *look) compareFlags(context.Context) error {
	values := map[string]string{}
	if err := yaml.Unmarshal(chart.ManagerValues, &values); err != nil {
		return fmt.Errorf("reading which flags values are for: %w", err)
	}
	known := strings.Fields(chart.ManagerFlags)
	flags := ManagerFlags(&l.manager)
	for _, e := range managerContainer(&l.manager).Env {
		if e.Name == "CUSTOM_RESOURCE_ENABLE" && e.Value != "" {
			l.addRow(Row{Effect: Differs, Object: object, Field: "env CUSTOM_RESOURCE_ENABLE", There: e.Value, Here: "not set: all kinds",
				Do: formatSet("manager.extraEnv[0].name", e.Name) + " " + formatSet("manager.extraEnv[0].value", e.Value)})
		}
	}
	// Flags that values of both charts set, and flags that every manager has.
	said := []string{"enable-leader-election", "leader-election-namespace", "metrics-addr", "health-probe-addr", "logtostderr", "v", "feature-gates", "sync-period", "pprof-addr", "enable-pprof", "logging-format"}
	var rows []Row
	var extra []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if slices.Contains(said, name) {
			continue
		}
		row := Row{Effect: Differs, Object: object, Field: "--" + name, There: flags[name], Here: "default"}
		path := values[name]
		switch {
		case !slices.Contains(known, name):
			row.Here = "there is no such flag"
		case path == "fixed":
			row.Here = "given by the chart, which goes by it"
		case path != "":
			row.Do = formatSet(path, flags[name])
		default:
			extra = append(extra, fmt.Sprintf("--%s=%s", name, flags[name]))
			row.Do = extraArgs // all of them at once, below: another --set of a list would replace it
		}
		rows = append(rows, row)
	}
	encoded, err := json.Marshal(extra)
	if err != nil {
		return fmt.Errorf("encoding flags: %w", err)
	}
	for _, row := range rows {
		if row.Do == extraArgs {
			row.Do = "--set-json " + quoteForShell(extraArgs+"="+string(encoded))
		}
		l.addRow(row)
	}
	return l.compareGates(flags["feature-gates"])
}

// extraArgs is the value of the chart for flags that have no value of their own.
const extraArgs = "manager.extraArgs"

// managerContainer is the container of the manager, empty if the Deployment has none.
func managerContainer(deployment *appsv1.Deployment) corev1.Container {
	for _, c := range deployment.Spec.Template.Spec.Containers {
		if c.Name == "manager" {
			return c
		}
	}
	return corev1.Container{}
}

// ManagerFlags returns the flags of the manager that a Deployment runs, by name.
func ManagerFlags(deployment *appsv1.Deployment) map[string]string {
	flags, c := map[string]string{}, managerContainer(deployment)
	for _, arg := range slices.Concat(c.Command, c.Args) {
		if name, ok := strings.CutPrefix(arg, "--"); ok {
			name, value, _ := strings.Cut(name, "=")
			flags[name] = value
		}
	}
	return flags
}

const object = "Deployment kruise-controller-manager"

// offThere are gates whose defaults differ between OpenKruise and Regatta: OpenKruise's code has them
// off, though its documentation says on, and Regatta has them on.
func offThere() []featuregate.Feature {
	return []featuregate.Feature{features.ResourcesDeletionProtection}
}

// compareGates compares the gates that are on in OpenKruise with those that will be on in Regatta.
func (l *look) compareGates(set string) error {
	there, err := features.New()
	if err != nil {
		return err
	}
	defaults := map[string]bool{}
	for _, f := range offThere() {
		defaults[string(f)] = false
	}
	if err := there.SetFromMap(defaults); err != nil {
		return fmt.Errorf("setting gates: %w", err)
	}
	for pair := range strings.SplitSeq(set, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		// Each pair is set alone, so that a wrong name does not affect the others.
		if err := there.Set(pair); err != nil {
			l.addRow(Row{Effect: Differs, Object: object, Field: "feature gate " + pair, There: pair, Here: "the manager refuses to start with it", Do: "leave it out of featureGates"})
		}
	}
	here, err := features.New()
	if err != nil {
		return err
	}
	kept := l.keptGates(here)
	for _, g := range []features.Gates{there, here} {
		if err := g.ResolveDependencies(""); err != nil {
			return err
		}
	}
	differing := map[string]bool{}
	for f := range there.GetAll() {
		if there.Enabled(f) != here.Enabled(f) {
			differing[string(f)] = there.Enabled(f)
		}
	}
	// All gates are set at once: another --set of the gates would replace those of the first, and those of the user.
	all := slices.DeleteFunc(kept, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		_, differs := differing[name]
		return differs
	})
	for _, name := range slices.Sorted(maps.Keys(differing)) {
		all = append(all, fmt.Sprintf("%s=%t", name, differing[name]))
	}
	whole := formatSet(gatesValue, strings.Join(all, ","))
	for _, name := range slices.Sorted(maps.Keys(differing)) {
		do := whole
		if len(differing) > 1 { // the user may want some of them only
			do = fmt.Sprintf("%s=%t in %s; all of them as there: %s", name, differing[name], gatesValue, whole)
		}
		l.addRow(Row{Effect: Differs, Object: object, Field: "feature gate " + name, There: onOff(differing[name]), Here: onOff(!differing[name]), Do: do})
	}
	return nil
}

// gatesValue is the value for feature gates.
const gatesValue = "featureGates"

// keptGates sets the gates that users have, and returns them in the form that the chart accepts. If
// that differs from what users wrote, or a gate does not exist, the command sets all gates again:
// they are one value, and removing it would turn off the gates that users turned on.
func (l *look) keptGates(here features.Gates) []string {
	var kept []string
	rewrites := l.release.rewritesGates
	for pair := range strings.SplitSeq(l.release.textValue(gatesValue, ""), ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		if err := here.Set(pair); err != nil {
			l.addRow(Row{Effect: Blocks, Object: "Release " + l.release.namespace + "/" + l.release.name, Field: gatesValue, There: pair, Here: err.Error(),
				Do: "leave it out, as the command below does"})
			rewrites = true
			continue
		}
		name, text, _ := strings.Cut(pair, "=")
		on, _ := strconv.ParseBool(strings.TrimSpace(text)) // it was set, so it is a boolean
		kept = append(kept, fmt.Sprintf("%s=%t", strings.TrimSpace(name), on))
	}
	if rewrites {
		l.release.setValue(gatesValue, strings.Join(kept, ","))
	}
	return kept
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
