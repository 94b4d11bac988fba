// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
)

// flags says which flags and gates of the running manager differ. The chart gives its
// manager what its values say, and nothing that was added to the Deployment by hand.
func (l *look) flags(context.Context) error {
	flags := ManagerFlags(&l.manager)
	for _, e := range managerContainer(&l.manager).Env {
		if e.Name == "CUSTOM_RESOURCE_ENABLE" && e.Value != "" {
			l.add(Row{Effect: Differs, Object: object, Field: "env CUSTOM_RESOURCE_ENABLE", There: e.Value, Here: "not set: all kinds", Do: "set it on the Deployment afterwards, or turn gates off"})
		}
	}
	// What values of the chart say, and what every manager has.
	said := []string{"enable-leader-election", "leader-election-namespace", "metrics-addr", "health-probe-addr", "logtostderr", "v", "feature-gates", "sync-period", "pprof-addr", "enable-pprof", "logging-format"}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if !slices.Contains(said, name) {
			l.add(Row{Effect: Differs, Object: object, Field: "--" + name, There: flags[name], Here: "default", Do: "it is no value of either chart; add it to the Deployment afterwards"})
		}
	}
	return l.gates(flags["feature-gates"])
}

// managerContainer is the container of the manager, empty where the Deployment has none.
func managerContainer(deployment *appsv1.Deployment) corev1.Container {
	for _, c := range deployment.Spec.Template.Spec.Containers {
		if c.Name == "manager" {
			return c
		}
	}
	return corev1.Container{}
}

// ManagerFlags are the flags of the manager that a Deployment runs, by name.
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

// offThere are gates that OpenKruise's code has off, and its documentation on. Here they are
// on, and the other way round.
func offThere() []featuregate.Feature {
	return []featuregate.Feature{features.ResourcesDeletionProtection}
}

// gates compares what is on there with what will be on here.
func (l *look) gates(set string) error {
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
		// By itself, so that one name that is wrong leaves the others.
		if err := there.Set(pair); err != nil {
			l.add(Row{Effect: Differs, Object: object, Field: "feature gate " + pair, There: pair, Here: "the manager refuses to start with it", Do: "leave it out of featureGates"})
		}
	}
	here, err := features.New()
	if err != nil {
		return err
	}
	kept := l.release.text("featureGates", "")
	if err := here.Set(kept); err != nil {
		l.add(Row{Effect: Blocks, Object: "Release " + l.release.namespace + "/" + l.release.name, Field: "featureGates", There: kept, Here: err.Error(), Do: "--set featureGates=... without it"})
		return nil
	}
	for _, g := range []features.Gates{there, here} {
		if err := g.Resolve(""); err != nil {
			return err
		}
	}
	for _, f := range slices.Sorted(maps.Keys(there.GetAll())) {
		if there.Enabled(f) == here.Enabled(f) {
			continue
		}
		l.add(Row{Effect: Differs, Object: object, Field: "feature gate " + string(f), There: onOff(there.Enabled(f)), Here: onOff(here.Enabled(f)),
			Do: fmt.Sprintf("--set featureGates=%s=%t", f, there.Enabled(f))})
	}
	return nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
