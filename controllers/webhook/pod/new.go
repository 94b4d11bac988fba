package pod

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
)

// Option changes the webhooks of pods.
type Option func(*options)

type options struct {
	all      bool
	patience time.Duration
}

// WithReadinessForAll is gate KruisePodReadinessGate.
func WithReadinessForAll(all bool) Option { return func(o *options) { o.all = all } }

// WithPatience sets how long an answer may take; the constant if it is 0.
func WithPatience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// New makes the webhooks of pods. The pods are read past the cache; budgets are
// found for new pods only where the guard counts them for anything.
func New(pods client.Reader, finder *podunavailablebudget.Finder, guard *Budget, opts ...Option) (*Mutator, *Validator) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	steps := []Step{ReadinessGate(o.all)}
	if guard.Deletes || guard.Updates {
		steps = append(steps, BudgetAnnotations(finder))
	}
	return &Mutator{Steps: steps, Patience: o.patience}, &Validator{Pods: pods, Guards: []Guard{guard}, Patience: o.patience}
}
