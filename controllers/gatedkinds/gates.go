// SPDX-License-Identifier: Apache-2.0

package gatedkinds

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
)

// requiredGates are the feature gates of each kind that requires any (PL-04): one gate of each group
// must be on.
func requiredGates() map[string][][]featuregate.Feature {
	agent := []featuregate.Feature{features.KruiseDaemon}
	pods := []featuregate.Feature{features.PodWebhook}
	pulls := []featuregate.Feature{features.ImagePullJobGate}
	return map[string][][]featuregate.Feature{
		"ContainerRecreateRequest": {agent},
		"NodeImage":                {agent},
		"ImagePullJob":             {agent, pulls},
		"ImageListPullJob":         {agent, pulls},
		"NodePodProbe":             {agent, {features.PodProbeMarkerGate, features.EnhancedLivenessProbe}},
		"PodProbeMarker":           {agent, {features.PodProbeMarkerGate}},
		"PodUnavailableBudget":     {pods, {features.PodUnavailableBudgetDeleteGate, features.PodUnavailableBudgetUpdateGate}},
		"ResourceDistribution":     {{features.ResourceDistributionGate}},
		"WorkloadSpread":           {pods, {features.WorkloadSpread}},
	}
}

// IsServed reports whether the feature gates let a controller act on objects of a kind.
func IsServed(kind string, on func(featuregate.Feature) bool) bool {
	return len(missingGates(kind, on)) == 0
}

// missingGates are the gates to turn on so that a controller acts on objects of a kind: the first
// of each group that is off.
func missingGates(kind string, on func(featuregate.Feature) bool) (missing []string) {
	for _, group := range requiredGates()[kind] {
		if !slices.ContainsFunc(group, on) {
			missing = append(missing, string(group[0]))
		}
	}
	return missing
}

// DescribeMissing says which feature gates of a kind are off and how to turn them on. It is empty
// for a kind that is served.
func DescribeMissing(kind string, on func(featuregate.Feature) bool) string {
	missing := missingGates(kind, on)
	if len(missing) == 0 {
		return ""
	}
	noun, verb, pronoun := "feature gate", "is", "it"
	if len(missing) > 1 {
		noun, verb, pronoun = "feature gates", "are", "them"
	}
	return fmt.Sprintf(`no controller acts on objects of kind %s, because the %s %s %s off; turn %s on in the values of the chart, beside the gates that are set there: --set featureGates="%s=true"`,
		kind, noun, strings.Join(missing, " and "), verb, pronoun, strings.Join(missing, `=true\,`))
}
