// SPDX-License-Identifier: Apache-2.0

// Package adapters has the adapters of the rollout loop for the kinds that a controller acts on. It is
// separate from the table of kinds so that a program that only reads objects, such as most of the
// command line, does not link controllers.
package adapters

import (
	"fmt"

	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cloneset"
	"github.com/regatta-sh/regatta/controllers/daemonset"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/statefulset"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// Settings are the feature gates and flags that concern the kinds.
type Settings struct {
	On func(featuregate.Feature) bool
	// ExcludePreparingDelete is flag cloneset-scaling-exclude-preparing-delete.
	ExcludePreparingDelete bool
	// PodsByScheduler is flag assign-pods-by-scheduler.
	PodsByScheduler bool
}

// New makes the adapter of a kind.
func New(w kinds.Workload, s Settings) (rollout.Kind, error) {
	switch w.GroupKind() {
	case kruise.Kind("CloneSet"):
		return cloneset.New(cloneset.GatesOf(s.On), s.ExcludePreparingDelete), nil
	case kruise.Kind("StatefulSet"):
		return statefulset.New(statefulset.GatesOf(s.On)), nil
	case kruise.Kind("DaemonSet"):
		return daemonset.New(daemonset.GatesOf(s.On), s.PodsByScheduler), nil
	}
	return nil, fmt.Errorf("no controller acts on %s", w.GroupKind())
}

// NewFactory makes the adapter of an object's kind once the feature gates are known.
func NewFactory(o client.Object) func(on func(featuregate.Feature) bool) (rollout.Kind, error) {
	return func(on func(featuregate.Feature) bool) (rollout.Kind, error) {
		w, ok := kinds.FindByObject(o)
		if !ok {
			return nil, fmt.Errorf("no controller acts on a %T", o)
		}
		return New(w, Settings{On: on, PodsByScheduler: true})
	}
}
