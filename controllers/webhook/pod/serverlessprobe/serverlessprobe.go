// SPDX-License-Identifier: Apache-2.0

// Package serverlessprobe writes into new pods which probes of PodProbeMarkers they run themselves,
// since a virtual node has no agent that runs them (PPM-06).
package serverlessprobe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/component-base/featuregate"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/podprobemarker/podmeta"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
)

// New makes the step, which reads PodProbeMarkers from a cache. A PodProbeMarker may select any pod.
func New(cached client.Reader) pod.MutatingStep {
	return pod.MutatingStep{
		Place: pod.ServerlessProbe, Name: "telling the pod of its PodProbeMarkers",
		Gates:  []featuregate.Feature{features.EnablePodProbeMarkerOnServerless},
		Match:  match.Created{Name: "probes"},
		Mutate: func(ctx context.Context, c *pod.Creation) (bool, error) { return mutatePod(ctx, cached, c) },
	}
}

func mutatePod(ctx context.Context, cached client.Reader, c *pod.Creation) (bool, error) {
	all, err := podmeta.List(ctx, cached, c.Namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(2).Info("A pod is created without its probes", "namespace", c.Namespace, "reason", err.Error())
		return false, nil
	}
	own := c.Pod.DeepCopy()
	own.Namespace = c.Namespace
	var mine []podmeta.Marker
	for _, m := range all {
		if m.SelectsPod(own, false) {
			mine = append(mine, m)
		}
	}
	probes, names := podmeta.InjectedProbes(mine, own)
	if len(probes) == 0 {
		return false, nil
	}
	raw, err := json.Marshal(probes)
	if err != nil {
		return false, fmt.Errorf("writing annotation %s: %w", kruise.PodProbeKey, err)
	}
	if c.Pod.Annotations == nil {
		c.Pod.Annotations = map[string]string{}
	}
	c.Pod.Annotations[kruise.PodProbeKey], c.Pod.Annotations[kruise.PodProbeMarkerListKey] = string(raw), strings.Join(names, ",")
	return true, nil
}
