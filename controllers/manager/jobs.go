// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	"github.com/regatta-sh/regatta/controllers/advancedcronjob"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/broadcastjob"
	"github.com/regatta-sh/regatta/controllers/ephemeraljob"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// jobKinds are the kinds of jobs that have a controller.
func jobKinds() []string { return []string{"BroadcastJob", "AdvancedCronJob", "EphemeralJob"} }

// addJobControllers adds the controllers of jobs, once there are their CRDs.
func (s *startup) addJobControllers(ctx context.Context) {
	// AdvancedCronJobs watch the jobs of all kinds that they may start.
	s.waitForKind(ctx, kruise.GroupVersion.WithKind("ImageListPullJob"), "no job is carried out")
	s.addKindControllers(ctx, jobKinds(), map[string]func(context.Context) error{
		"BroadcastJob": s.p.broadcastJobsTo, "AdvancedCronJob": s.p.advancedCronJobsTo, "EphemeralJob": s.p.ephemeralJobsTo,
	})
}

func (p components) advancedCronJobsTo(ctx context.Context) error {
	clients := rollout.Clients{Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Events: p.recorderFor(kruise.AdvancedCronJobComponent)}
	r := advancedcronjob.New(clients, p.host.Engine(),
		advancedcronjob.WithWorkers(p.AdvancedCronJobWorkers),
		advancedcronjob.WithRounds(p.rounds),
		advancedcronjob.WithKicks(p.events.workloads["AdvancedCronJob"]),
		advancedcronjob.WithRateLimiter(p.rateLimiter()))
	if err := r.SetupWithManager(ctx, p.mgr); err != nil {
		return fmt.Errorf("adding the AdvancedCronJob controller: %w", err)
	}
	return nil
}

func (p components) broadcastJobsTo(context.Context) error {
	clients := rollout.Clients{Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Events: p.recorderFor(kruise.BroadcastJobComponent)}
	r := broadcastjob.New(clients, p.host.Engine(),
		broadcastjob.WithWorkers(p.BroadcastJobWorkers),
		broadcastjob.WithRounds(p.rounds),
		broadcastjob.WithAffinity(p.BroadcastJobAffinity),
		broadcastjob.WithExpectationTimeout(p.ExpectationTimeout),
		broadcastjob.WithKicks(p.events.workloads["BroadcastJob"]),
		broadcastjob.WithRateLimiter(p.rateLimiter()))
	if err := r.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the BroadcastJob controller: %w", err)
	}
	return nil
}

func (p components) ephemeralJobsTo(context.Context) error {
	clients := rollout.Clients{Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Events: p.recorderFor(v1alpha1.EphemeralJobComponent)}
	r := ephemeraljob.New(clients, p.host.Engine(),
		ephemeraljob.WithKicks(p.events.workloads["EphemeralJob"]),
		ephemeraljob.WithRateLimiter(p.rateLimiter()))
	if err := r.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the EphemeralJob controller: %w", err)
	}
	return nil
}
