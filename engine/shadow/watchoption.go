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

// WithTopic says what is compared, for counts that are to go on with other snapshots
// of it: those that differ only in what is the same on both sides. Without it a
// snapshot is about its revision.
func WithTopic(what string) WatchOption { return func(w *shadow) { w.about = what } }

// WithLiveSnapshot compares only with decisions that a snapshot made, the one that the
// shadow differs from in nothing but what is tried. What others made just before
// or just after would differ for reasons that are not the shadow's; it counts as
// skipped.
func WithLiveSnapshot(live *engine.Snapshot) WatchOption { return func(w *shadow) { w.beside = live } }
