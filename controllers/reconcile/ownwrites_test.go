// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// A controller that writes a status which the cache does not show waits until the cache shows it, so that
// it compares no status with an old one.
func TestAControllerWaitsForItsOwnStatus(t *testing.T) {
	phases := []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodPending}
	for name, write := range map[string]func(context.Context, client.Client, *corev1.Pod, *corev1.Pod) error{
		"an update": func(ctx context.Context, c client.Client, _, next *corev1.Pod) error {
			return c.Status().Update(ctx, next)
		},
		"a patch": func(ctx context.Context, c client.Client, was, next *corev1.Pod) error {
			return c.Status().Patch(ctx, next, client.MergeFrom(was))
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			var late *corev1.Pod
			api := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(pod("a")).WithStatusSubresource(&corev1.Pod{}).Build()
			deps := reconcile.Deps{
				Client: interceptor.NewClient(api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if p, ok := o.(*corev1.Pod); ok && late != nil {
						late.DeepCopyInto(p)
						return nil
					}
					return c.Get(ctx, key, o, opts...)
				}}),
				Now: func() time.Time { return now },
			}.WithDefaults()
			var observed corev1.PodPhase
			r := reconcile.NewObjectReconciler(deps, reconcile.ObjectFuncs[*corev1.Pod]{
				Reconcile: func(ctx context.Context, p *corev1.Pod) (time.Duration, error) {
					if p.Status.Phase == observed {
						return 0, nil
					}
					next := p.DeepCopy()
					next.Status.Phase = observed
					return 0, write(ctx, deps.Client, p, next)
				},
			})
			req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod("a"))}
			run := func() time.Duration {
				t.Helper()
				res, err := r.Reconcile(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				return res.RequeueAfter
			}
			stored := func() *corev1.Pod {
				t.Helper()
				p := &corev1.Pod{}
				if err := api.Get(t.Context(), req.NamespacedName, p); err != nil {
					t.Fatal(err)
				}
				return p
			}
			observed = phases[0]
			run()
			before := stored()
			observed = phases[1]
			run()
			observed, late = phases[2], before
			if after := run(); after != requeue.Soon {
				t.Errorf("with a cache that is late it looks again after %s", after)
			}
			late = nil
			if after := run(); after != 0 || stored().Status.Phase != observed {
				t.Errorf("it looks again after %s, and the phase is %s", after, stored().Status.Phase)
			}
			late = before // as after a cluster was restored from a backup
			run()
			now = now.Add(2 * time.Minute)
			if after := run(); after != 0 {
				t.Errorf("it waits for the cache without an end: after %s", after)
			}
		})
	}
}
