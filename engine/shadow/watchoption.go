// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// WatchOption limits what a shadow is about.
type WatchOption func(*shadow)

// WithSubjectFilter compares decisions about some subjects alone.
func WithSubjectFilter(f func(decision.Subject) bool) WatchOption {
	return func(w *shadow) { w.only = f }
}

// WithTopic names the topic of a comparison. The counts continue with other snapshots of the same
// topic, which differ only in parts that are equal on both sides. The default is the revision of the
// snapshot.
func WithTopic(what string) WatchOption { return func(w *shadow) { w.about = what } }

// WithLiveSnapshot compares only with decisions of a given snapshot, from which the shadow differs
// only in the bundle that is tried. Decisions that other snapshots made just before or after would
// differ for other reasons; they count as skipped.
func WithLiveSnapshot(live *engine.Snapshot) WatchOption { return func(w *shadow) { w.beside = live } }
