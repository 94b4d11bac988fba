// SPDX-License-Identifier: Apache-2.0

// Package permit has the annotation by which the manager permits a node to stop containers: it is on a
// ContainerRecreateRequest, and names the run of each container.
//
// A permit names a run, not a container, and it is written before anything is
// stopped. So one permit ends only one run, even if a step is repeated after a crash of the manager or
// the agent.
package permit

import (
	"encoding/json"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/annotation"
)

// Key is the annotation. Only the manager may write it.
const Key = "crr.regatta.sh/restart"

// Permits are the IDs of the runs to end, by name of the container.
type Permits map[string]string

// ReadPermits reads the permits of an object. An invalid annotation permits nothing.
func ReadPermits(o client.Object) (Permits, error) {
	text := o.GetAnnotations()[Key]
	if text == "" {
		return nil, nil
	}
	out, err := annotation.Decode[Permits](Key, text)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// AddToObject adds permits to those of an object, and reports whether any were new.
func (p Permits) AddToObject(o client.Object, names []string, run func(name string) string) (bool, error) {
	all := maps.Clone(p)
	if all == nil {
		all = Permits{}
	}
	added := false
	for _, name := range names {
		if id := run(name); all[name] == "" && id != "" {
			all[name], added = id, true
		}
	}
	if !added {
		return false, nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return false, fmt.Errorf("writing annotation %s: %w", Key, err)
	}
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[Key] = string(raw)
	o.SetAnnotations(annotations)
	return true, nil
}
