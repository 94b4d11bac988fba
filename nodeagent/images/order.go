// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// order has the current settings of a pull.
type order struct {
	spec    kruise.ImageTagSpec
	image   kruise.ImageSpec
	changed <-chan struct{} // closed when the order changes
}

func (o order) pullPolicy() *kruise.ImageTagPullPolicy {
	if o.spec.PullPolicy == nil {
		return &kruise.ImageTagPullPolicy{}
	}
	return o.spec.PullPolicy
}

func (a *Agent) orderOf(p *pull) order {
	a.mu.Lock()
	defer a.mu.Unlock()
	return order{p.spec, p.image, p.changed}
}

// applyEdit applies an edit of a job to a running pull. The caller holds Agent.mu.
func (p *pull) applyEdit(spec kruise.ImageTagSpec, image kruise.ImageSpec) {
	if equality.Semantic.DeepEqual(p.spec, spec) && equality.Semantic.DeepEqual(p.image, image) {
		return
	}
	p.spec, p.image = *spec.DeepCopy(), *image.DeepCopy()
	close(p.changed)
	p.changed = make(chan struct{})
}

// withDeadline ends a context so many seconds after a time, with a cause. The number is read again when the order changes; nil is without a limit.
func (a *Agent) withDeadline(ctx context.Context, p *pull, since time.Time, cause error, seconds func(*kruise.ImageTagPullPolicy) *int64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	recovery.Go("images", func() {
		for {
			current := a.orderOf(p)
			var over <-chan time.Time
			if s := seconds(current.pullPolicy()); s != nil {
				timer := time.NewTimer(time.Duration(min(*s, math.MaxInt64/int64(time.Second)))*time.Second - a.now().Sub(since))
				defer timer.Stop()
				over = timer.C
			}
			select {
			case <-ctx.Done():
				return
			case <-over:
				cancel(cause)
				return
			case <-current.changed:
			}
		}
	}, nil)
	return ctx, func() { cancel(nil) }
}

func deadlineOf(policy *kruise.ImageTagPullPolicy) *int64 { return policy.ActiveDeadlineSeconds }

func timeoutOf(policy *kruise.ImageTagPullPolicy) *int64 {
	return ptr.To(int64(ptr.Deref(policy.TimeoutSeconds, kruise.DefaultPullTimeoutSeconds)))
}
