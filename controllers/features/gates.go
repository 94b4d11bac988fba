// SPDX-License-Identifier: Apache-2.0

package features

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/component-base/featuregate"
)

const (
	allAlpha featuregate.Feature = "AllAlpha"
	allBeta  featuregate.Feature = "AllBeta"
)

// gateAliases are names of gates that the documentation used.
func gateAliases() map[string]featuregate.Feature {
	return map[string]featuregate.Feature{
		"EnhancedLivenessProbeGate":                EnhancedLivenessProbe,
		"ForceDeleteTimeoutExpectationFeatureGate": ForceDeleteTimeoutExpectationGate,
	}
}

// Gates is a set of gates. Its Set method reads the flag --feature-gates.
type Gates struct {
	featuregate.MutableVersionedFeatureGate
}

// New makes gates with their defaults.
func New() (Gates, error) {
	g := Gates{featuregate.NewFeatureGate()}
	if err := g.Add(gateSpecs()); err != nil {
		return g, fmt.Errorf("registering feature gates: %w", err)
	}
	return g, nil
}

// Set reads a flag value such as "A=true,B=false". Names that do not exist are
// refused. An alias sets the gate that it is another name of. As a separate gate it would follow
// AllAlpha even if the flag names the gate itself.
func (g Gates) Set(value string) error {
	set := map[string]bool{}
	var wrong []error
	for pair := range strings.SplitSeq(value, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, text, _ := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		on, err := strconv.ParseBool(strings.TrimSpace(text))
		if err != nil {
			wrong = append(wrong, fmt.Errorf("feature gate %s is %q, want %s=true or %s=false", name, text, name, name))
			continue
		}
		if f, ok := gateAliases()[name]; ok {
			name = string(f)
		}
		if _, known := g.GetAll()[featuregate.Feature(name)]; !known {
			wrong = append(wrong, g.unknownGateError(name))
			continue
		}
		if before, twice := set[name]; twice && before != on {
			wrong = append(wrong, fmt.Errorf("feature gate %s is both true and false", name))
		}
		set[name] = on
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	return g.SetFromMap(set)
}

// unknownGateError names the gates that were probably meant: those that differ in upper
// and lower case, in the ending Gate, or have one name in the other.
func (g Gates) unknownGateError(name string) error {
	plain := func(s string) string { return strings.TrimSuffix(strings.ToLower(s), "gate") }
	var near []string
	for _, f := range slices.Sorted(maps.Keys(g.GetAll())) {
		if a, b := plain(string(f)), plain(name); a == b || len(b) > 3 && (strings.Contains(a, b) || strings.Contains(b, a)) {
			near = append(near, string(f))
		}
	}
	if len(near) == 0 {
		return fmt.Errorf("there is no feature gate %s; the README of the chart lists all", name)
	}
	return fmt.Errorf("there is no feature gate %s; is it %s?", name, strings.Join(near, " or "))
}

// Type names the flag's type in help texts.
func (Gates) Type() string { return "mapStringBool" }

// String is the flag's value.
func (g Gates) String() string { return "" }

// ResolveDependencies applies what gates do to one another once all were set (PL-01).
// webhookResources is the environment variable CUSTOM_RESOURCE_ENABLE: set
// without SidecarSet it makes false the default of PodWebhook.
func (g Gates) ResolveDependencies(webhookResources string) error {
	resources := strings.FieldsFunc(webhookResources, func(r rune) bool { return r == ',' || r == ' ' })
	changes := map[string]bool{}
	if len(resources) > 0 && !slices.Contains(resources, "SidecarSet") && !g.ExplicitlySet(PodWebhook) && !g.ExplicitlySet(allBeta) {
		changes[string(PodWebhook)] = false
	}
	if g.Enabled(allAlpha) {
		for _, f := range notOfAllAlpha() {
			if !g.ExplicitlySet(f) {
				changes[string(f)] = false
			}
		}
	}
	enabled := func(f featuregate.Feature) bool {
		if on, changed := changes[string(f)]; changed {
			return on
		}
		return g.Enabled(f)
	}
	for gate, closed := range dependentGates() {
		if !enabled(gate) {
			for _, f := range closed {
				changes[string(f)] = false
			}
		}
	}
	if enabled(PreDownloadImageForInPlaceUpdate) || enabled(PreDownloadImageForDaemonSetUpdate) {
		changes[string(ImagePullJobGate)] = true
	}
	if len(changes) == 0 {
		return nil
	}
	if err := g.SetFromMap(changes); err != nil {
		return fmt.Errorf("resolving feature gates: %w", err)
	}
	return nil
}
