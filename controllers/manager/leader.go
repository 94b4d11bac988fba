// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
)

// leaderGauge is the metric kruise_manager_is_leader: 1 in the leader, 0 in the other replicas.
type leaderGauge struct{ prometheus.Gauge }

func addLeaderGauge(mgr ctrl.Manager) error {
	g := leaderGauge{prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kruise_manager_is_leader", Help: "1 in the replica that acts, 0 in the others.",
	})}
	if err := metrics.Registry.Register(g); err != nil {
		return fmt.Errorf("registering kruise_manager_is_leader: %w", err)
	}
	if err := mgr.Add(crecovery.WrapRunnable("leader", g)); err != nil {
		return fmt.Errorf("adding kruise_manager_is_leader: %w", err)
	}
	return nil
}

// NeedLeaderElection is true: the gauge goes up when this replica leads.
func (leaderGauge) NeedLeaderElection() bool { return true }

// Start raises the gauge. A replica that stops leading ends, and its metrics
// with it.
func (g leaderGauge) Start(ctx context.Context) error {
	g.Set(1)
	<-ctx.Done()
	g.Set(0)
	return nil
}
