// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/regatta-sh/regatta/engine/recovery"
)

var setUp sync.Once

// SetUpProcess counts and logs panics of the process, and makes the goroutines of client-go continue
// after one. A process calls it before it makes its manager.
func SetUpProcess() {
	setUp.Do(func() {
		utilruntime.ReallyCrash = false
		utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(_ context.Context, value any) {
			recovery.CountPanic("client-go")
		})
		recovery.SetLogger(func(p *recovery.Panic, stack []byte) {
			klog.ErrorS(p, "Recovered a panic", "component", p.Component, "stack", string(stack))
		})
		metrics.Registry.MustRegister(recovery.PanicCollector())
	})
}

// WrapRunnable wraps r so that it is started again after a pause when it panics. The result needs leader
// election if r does.
func WrapRunnable(component string, r manager.Runnable) manager.Runnable {
	return runnable{component, r}
}

type runnable struct {
	component string
	manager.Runnable
}

// Start implements manager.Runnable.
func (r runnable) Start(ctx context.Context) error {
	return recovery.CallUntilDone(ctx, r.component, r.Runnable.Start)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r runnable) NeedLeaderElection() bool {
	if l, ok := r.Runnable.(manager.LeaderElectionRunnable); ok {
		return l.NeedLeaderElection()
	}
	return true
}
