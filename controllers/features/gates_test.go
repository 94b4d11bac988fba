// SPDX-License-Identifier: Apache-2.0

package features

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
)

func newGates(t *testing.T) Gates {
	t.Helper()
	g, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestResolve(t *testing.T) {
	type names = []featuregate.Feature
	pods := dependentGates()[PodWebhook]
	node := dependentGates()[KruiseDaemon]
	for name, tc := range map[string]struct {
		flag, resources string
		on, off         names
	}{
		"nothing is set":                                {on: names{PodWebhook, KruiseDaemon, WorkloadSpread}, off: names{EnableExternalCerts}},
		"without webhooks for pods":                     {flag: "PodWebhook=false,PodUnavailableBudgetUpdateGate=true", off: pods},
		"without the node agent":                        {flag: "KruiseDaemon=false,SidecarTerminator=true", off: node},
		"without deletion protection":                   {flag: "ResourcesDeletionProtection=false,DeletionProtectionForCRDCascadingGate=true", off: names{DeletionProtectionForCRDCascadingGate}},
		"pre-download needs pull jobs":                  {flag: "PreDownloadImageForInPlaceUpdate=true,ImagePullJobGate=false", on: names{ImagePullJobGate}},
		"pre-download of daemons needs pull jobs":       {flag: "PreDownloadImageForDaemonSetUpdate=true", on: names{ImagePullJobGate}},
		"pre-download without the node agent":           {flag: "KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true", off: names{ImagePullJobGate, PreDownloadImageForInPlaceUpdate}},
		"resources with SidecarSet":                     {resources: "CloneSet,SidecarSet", on: names{PodWebhook}},
		"resources with SidecarSet after a space":       {resources: "CloneSet, SidecarSet", on: names{PodWebhook}},
		"resources without SidecarSet":                  {resources: "CloneSet", off: append(slices.Clone(pods), PodWebhook)},
		"resources without, but the gate was asked for": {resources: "CloneSet", flag: "PodWebhook=true", on: names{PodWebhook, WorkloadSpread}},
		"resources without, but all beta was asked for": {resources: "CloneSet", flag: "AllBeta=true", on: names{PodWebhook, ResourceDistributionGate}},
		"no beta":                            {flag: "AllBeta=false", off: append(slices.Clone(node), PodWebhook, KruiseDaemon, PodIndexLabel)},
		"one beta":                           {flag: "AllBeta=false,KruiseDaemon=true", on: names{KruiseDaemon}, off: names{PodWebhook, DaemonWatchingPod}},
		"an alias":                           {flag: "EnhancedLivenessProbeGate=true", on: names{EnhancedLivenessProbe}},
		"the other alias":                    {flag: "ForceDeleteTimeoutExpectationFeatureGate=true", on: names{ForceDeleteTimeoutExpectationGate}},
		"an alias without webhooks for pods": {flag: "EnhancedLivenessProbeGate=true,PodWebhook=false", off: names{EnhancedLivenessProbe}},
		"spaces":                             {flag: " CloneSetShortHash = true , PodWebhook=false,", on: names{CloneSetShortHash}, off: names{PodWebhook}},
		"numbers and letters for true, as flags have it": {flag: "CloneSetShortHash=1,PreparingUpdateAsUpdate=T", on: names{CloneSetShortHash, PreparingUpdateAsUpdate}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGates(t)
			if err := g.Set(tc.flag); err != nil {
				t.Fatal(err)
			}
			if err := g.ResolveDependencies(tc.resources); err != nil {
				t.Fatal(err)
			}
			check(t, g, tc.on, tc.off)
		})
	}
}

func TestAllAlpha(t *testing.T) {
	for name, tc := range map[string]struct {
		flag string
		off  []featuregate.Feature
	}{
		"leaves certificates alone":                           {"AllAlpha=true", []featuregate.Feature{EnableExternalCerts, LaunchPriorityNativeSidecars}},
		"takes certificates that are named":                   {"AllAlpha=true,EnableExternalCerts=true,LaunchPriorityNativeSidecars=true", nil},
		"leaves out what is named":                            {"AllAlpha=true,EnhancedLivenessProbe=false,EnableExternalCerts=true,LaunchPriorityNativeSidecars=true", []featuregate.Feature{EnhancedLivenessProbe}},
		"leaves out what is named by its alias":               {"EnhancedLivenessProbeGate=false,AllAlpha=true,EnableExternalCerts=true,LaunchPriorityNativeSidecars=true", []featuregate.Feature{EnhancedLivenessProbe}},
		"leaves out what cannot be without webhooks for pods": {"AllAlpha=true,PodWebhook=false", append([]featuregate.Feature{EnableExternalCerts, PodWebhook}, dependentGates()[PodWebhook]...)},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // maps have no order
				g := newGates(t)
				if err := g.Set(tc.flag); err != nil {
					t.Fatal(err)
				}
				if err := g.ResolveDependencies(""); err != nil {
					t.Fatal(err)
				}
				var on []featuregate.Feature
				for f, spec := range gateSpecs() {
					if !slices.Contains(tc.off, f) && (spec.Default || spec.PreRelease == featuregate.Alpha) {
						on = append(on, f)
					}
				}
				check(t, g, on, tc.off)
			}
		})
	}
}

func check(t *testing.T, g Gates, on, off []featuregate.Feature) {
	t.Helper()
	for _, f := range on {
		if !g.Enabled(f) {
			t.Errorf("%s is off", f)
		}
	}
	for _, f := range off {
		if g.Enabled(f) {
			t.Errorf("%s is on", f)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		flag string
		want []string
	}{
		"a name that nothing is like":       {"Nonsense=true", []string{"there is no feature gate Nonsense; the README of the chart lists all"}},
		"a name in lower case":              {"clonesetshorthash=true", []string{"there is no feature gate clonesetshorthash; is it CloneSetShortHash?"}},
		"a name without its ending":         {"ImagePullJob=true", []string{"is it ImagePullJobGate?"}},
		"a name with an ending it lacks":    {"CloneSetShortHashGate=true", []string{"is it CloneSetShortHash?"}},
		"a name that may be one of several": {"PreDownloadImage=true", []string{"is it PreDownloadImageForDaemonSetUpdate or PreDownloadImageForInPlaceUpdate?"}},
		"a name without a value":            {"CloneSetShortHash", []string{`feature gate CloneSetShortHash is "", want CloneSetShortHash=true or CloneSetShortHash=false`}},
		"a value that is neither":           {"CloneSetShortHash=on", []string{`feature gate CloneSetShortHash is "on"`}},
		"all that is wrong at once":         {"Nonsense=true,CloneSetShortHash=maybe", []string{"Nonsense", `"maybe"`}},
		"a gate and its alias that differ":  {"EnhancedLivenessProbe=true,EnhancedLivenessProbeGate=false", []string{"feature gate EnhancedLivenessProbe is both true and false"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGates(t)
			err := g.Set(tc.flag)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
			if g.Enabled(CloneSetShortHash) || g.Enabled(EnhancedLivenessProbe) {
				t.Error("a part of it was taken")
			}
		})
	}
}
