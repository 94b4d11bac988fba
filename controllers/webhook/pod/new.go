// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is how long an answer may take by default. It must come before the API server's own timeout, after which the
// failure policy decides: a budget that is late must refuse.
const Patience = 2500 * time.Millisecond

// New makes the webhooks of pods from enabled steps. pods must not read from a cache. patience is how long an answer may
// take; the constant if it is 0.
func New(pods client.Reader, steps Steps, patience time.Duration) (*Mutator, *Validator) {
	return &Mutator{Steps: steps.Mutating, Patience: patience}, &Validator{Pods: pods, Steps: steps.Validating, Patience: patience}
}
