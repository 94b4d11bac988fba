// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
)

const (
	labels      = runtimemeta.Labels
	annotations = runtimemeta.Annotations
)

// Metadata is the labels and annotations that the env of a container reads.
type Metadata kruise.ContainerRefMetadata

func (m *Metadata) kindEntries(kind string) *map[string]string {
	if kind == labels {
		return &m.Labels
	}
	return &m.Annotations
}

func (m *Metadata) getEntry(kind, key string) (string, bool) {
	v, ok := (*m.kindEntries(kind))[key]
	return v, ok
}

func (m *Metadata) setEntry(kind, key, value string) {
	kv := m.kindEntries(kind)
	if *kv == nil {
		*kv = map[string]string{}
	}
	(*kv)[key] = value
}

func (m *Metadata) isEmpty() bool { return len(m.Labels) == 0 && len(m.Annotations) == 0 }

// sharesKey reports whether two containers read the same label or annotation.
func (m *Metadata) sharesKey(o *Metadata) bool {
	for _, kind := range []string{labels, annotations} {
		for k := range *m.kindEntries(kind) {
			if _, ok := o.getEntry(kind, k); ok {
				return true
			}
		}
	}
	return false
}
