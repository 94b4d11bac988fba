// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/advancedcronjob"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/broadcastjob"
	"github.com/regatta-sh/regatta/controllers/ephemeraljob"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/imagelistpulljob"
	"github.com/regatta-sh/regatta/controllers/imagepulljob"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/launchpriority"
	"github.com/regatta-sh/regatta/controllers/livenessprobe"
	"github.com/regatta-sh/regatta/controllers/nodeimage"
	"github.com/regatta-sh/regatta/controllers/nodepodprobe"
	"github.com/regatta-sh/regatta/controllers/podprobemarker"
	"github.com/regatta-sh/regatta/controllers/podreadiness"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/resourcedistribution"
	"github.com/regatta-sh/regatta/controllers/sidecarterminator"
	"github.com/regatta-sh/regatta/controllers/uniteddeployment"
	"github.com/regatta-sh/regatta/controllers/workloadspread"
)

// controllerRow is a controller that the manager runs.
type controllerRow struct {
	// name is the name of the controller, and the source of its events.
	name string
	// kind is the kind that the controller reconciles; "" for a controller of pods. The controller is not
	// added while a feature gate of the kind is off.
	kind string
	// needs are other kinds that the controller reads or creates. It is added once their CRDs and that of kind are
	// installed.
	needs []string
	// gate is one more feature gate that the controller needs; "" is none.
	gate featuregate.Feature
	// decides is whether the controller asks policies. It is added after they are loaded.
	decides bool
	// workers is how many objects are reconciled at once; 0 is the default.
	workers int
	// retriesAlone is true if the retry of an object does not count against the limit of the flags for all objects: containers and
	// pods wait for these writes.
	retriesAlone bool
	// without says for the log what does not happen until the controller is added.
	without string
	// build makes the controller.
	build buildFunc
}

// buildFunc makes a controller.
type buildFunc func(context.Context, reconcile.Deps) (reconcile.Controller, error)

// buildsOnly is a buildFunc that needs no context and does not fail.
func buildsOnly(build func(reconcile.Deps) reconcile.Controller) buildFunc {
	return func(_ context.Context, d reconcile.Deps) (reconcile.Controller, error) { return build(d), nil }
}

// listControllers lists the controllers except those of workloads, which listWorkloadControllers lists.
func (p components) listControllers() []controllerRow {
	return slices.Concat(p.listPodControllers(), p.listNodeControllers(), p.listJobControllers(), p.listPlacementControllers())
}

// listPodControllers lists the controllers of pods: their readiness gates, barriers, budgets and sidecars.
func (p components) listPodControllers() []controllerRow {
	return []controllerRow{{
		name: "container-launch-priority-controller", gate: features.PodWebhook, workers: 4, retriesAlone: true,
		without: "containers that start in an order do not start",
		build:   buildsOnly(func(d reconcile.Deps) reconcile.Controller { return &launchpriority.Reconciler{Deps: d} }),
	}, {
		name: "pod-readiness-controller", gate: features.PodWebhook, workers: 8, retriesAlone: true,
		without: "pods with the readiness gate KruisePodReady do not become ready",
		build:   buildsOnly(func(d reconcile.Deps) reconcile.Controller { return &podreadiness.Reconciler{Deps: d} }),
	}, {
		name: "podunavailablebudget-controller", kind: "PodUnavailableBudget",
		workers: p.PodUnavailableBudgetWorkers, without: "PodUnavailableBudgets have no status, so that they hold nothing back",
		build: p.newBudgetController,
	}, {
		name: sidecarSetController, kind: "SidecarSet", decides: true,
		workers: p.SidecarSetWorkers, without: "no SidecarSet has a status or is updated",
		build: p.newSidecarSetController,
	}, {
		name: "sidecarterminator-controller", needs: []string{"ContainerRecreateRequest"}, decides: true, gate: features.SidecarTerminator,
		workers: p.SidecarTerminatorWorkers, without: "no sidecar ends with its job",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller { return sidecarterminator.New(d) }),
	}}
}

// listNodeControllers lists the controllers of objects that node agents act on.
func (p components) listNodeControllers() []controllerRow {
	on := p.Gates.Enabled
	return []controllerRow{{
		name: "containerrecreaterequest-controller", kind: "ContainerRecreateRequest", decides: true,
		workers: p.CRRWorkers, without: "no container is restarted by a ContainerRecreateRequest",
		build: p.newRestartController,
	}, {
		name: "nodeimage-controller", kind: "NodeImage", needs: []string{"ImagePullJob"}, decides: true,
		workers: p.NodeImageWorkers, without: "no node gets a NodeImage",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller {
			return nodeimage.New(d, nodeimage.WithCreationDelay(p.NodeImageCreationDelay))
		}),
	}, {
		name: "imagepulljob-controller", kind: "ImagePullJob", needs: []string{"NodeImage"}, decides: true,
		workers: p.ImagePullJobWorkers, without: "no ImagePullJob pulls an image",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller {
			return imagepulljob.New(d, imagepulljob.WithAlwaysTTL(p.AlwaysNodeImageTTL))
		}),
	}, {
		name: "imagelistpulljob-controller", kind: "ImageListPullJob", needs: []string{"ImagePullJob"}, decides: true,
		without: "no ImageListPullJob makes ImagePullJobs",
		build:   buildsOnly(func(d reconcile.Deps) reconcile.Controller { return imagelistpulljob.New(d) }),
	}, {
		name: "nodepodprobe-controller", kind: "NodePodProbe", needs: []string{"PodProbeMarker"}, decides: true,
		workers: p.NodePodProbeWorkers, without: "no pod is probed",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller {
			return nodepodprobe.New(d, nodepodprobe.WithWindow(p.writes), nodepodprobe.WithMarkers(on(features.PodProbeMarkerGate)),
				nodepodprobe.WithLiveness(on(features.EnhancedLivenessProbe)))
		}),
	}, {
		name: "livenessprobe-controller", kind: "NodePodProbe", needs: []string{"ContainerRecreateRequest"}, decides: true,
		gate: features.EnhancedLivenessProbe, workers: p.NodePodProbeWorkers, without: "no container is restarted whose liveness probe fails",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller { return livenessprobe.New(d, p.webhooks.agents) }),
	}, {
		name: "podprobemarker-controller", kind: "PodProbeMarker", needs: []string{"NodePodProbe"}, decides: true,
		workers: p.PodProbeMarkerWorkers, without: "no PodProbeMarker has a status",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller {
			return podprobemarker.New(d, podprobemarker.WithServerless(p.Gates.Enabled(features.EnablePodProbeMarkerOnServerless)))
		}),
	}}
}

// listJobControllers lists the controllers of jobs.
func (p components) listJobControllers() []controllerRow {
	return []controllerRow{{
		name: kruise.BroadcastJobComponent, kind: "BroadcastJob", decides: true,
		workers: p.BroadcastJobWorkers, without: "no BroadcastJob runs pods",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller {
			return broadcastjob.New(d, broadcastjob.WithAffinity(p.BroadcastJobAffinity), broadcastjob.WithExpectationTimeout(p.ExpectationTimeout))
		}),
	}, {
		name: kruise.AdvancedCronJobComponent, decides: true,
		kind: "AdvancedCronJob", needs: []string{"BroadcastJob", "ImageListPullJob"},
		workers: p.AdvancedCronJobWorkers, without: "no AdvancedCronJob starts a job",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller { return advancedcronjob.New(d) }),
	}, {
		name: v1alpha1.EphemeralJobComponent, kind: "EphemeralJob", decides: true,
		workers: 10, without: "no EphemeralJob adds containers to pods",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller { return ephemeraljob.New(d) }),
	}}
}

// listPlacementControllers lists the controllers that place pods and copies of objects.
func (p components) listPlacementControllers() []controllerRow {
	return []controllerRow{{
		name: kruise.UnitedDeploymentComponent, kind: "UnitedDeployment", needs: []string{"CloneSet", "StatefulSet"}, decides: true,
		workers: p.UnitedDeploymentWorkers, without: "no UnitedDeployment makes workloads",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller { return uniteddeployment.New(d) }),
	}, {
		name: "persistentpodstate-controller", kind: "PersistentPodState", needs: []string{"StatefulSet"}, decides: true,
		workers: p.PersistentPodStateWorkers, without: "nothing remembers where pods ran",
		build: p.newPodStateController,
	}, {
		name: kruise.WorkloadSpreadComponent, kind: "WorkloadSpread", needs: []string{"CloneSet", "StatefulSet"}, decides: true,
		workers: p.WorkloadSpreadWorkers, without: "no WorkloadSpread has a status",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller {
			return workloadspread.New(d, p.spreading.targets, p.spreading.book, workloadspread.WithVersions(p.spreading.versions))
		}),
	}, {
		name: "resourcedistribution-controller", kind: "ResourceDistribution", decides: true,
		workers: p.ResourceDistributionWorkers, without: "nothing is distributed",
		build: buildsOnly(func(d reconcile.Deps) reconcile.Controller { return resourcedistribution.New(d) }),
	}}
}

// listWorkloadControllers lists the controllers of the kinds of workloads.
func (p components) listWorkloadControllers() []controllerRow {
	var rows []controllerRow
	for _, w := range kinds.ActingWorkloads() {
		rows = append(rows, controllerRow{
			name: w.Component, kind: w.Kind, decides: true,
			workers: *p.Workers[w.Kind], without: w.Kind + "s are not reconciled",
			build: func(_ context.Context, d reconcile.Deps) (reconcile.Controller, error) {
				return p.newWorkloadController(w, d)
			},
		})
	}
	return rows
}

// addController adds the controller of a row to the manager.
func (p components) addController(ctx context.Context, row controllerRow) error {
	c, err := row.build(ctx, p.newDeps(row))
	if err == nil {
		err = c.SetupWithManager(ctx, p.mgr)
	}
	if err != nil {
		return fmt.Errorf("adding %s: %w", row.name, err)
	}
	return nil
}

// newDeps returns what the controller of a row needs.
func (p components) newDeps(row controllerRow) reconcile.Deps {
	d := reconcile.Deps{
		Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Events: p.recorderFor(row.name), Engine: p.host.Engine(), Rounds: p.rounds,
		Workers: row.workers, StatusInterval: statusInterval,
	}
	if row.decides {
		d.PolicyChanges = p.events.newSubscription()
	}
	if !row.retriesAlone {
		d.NewRateLimiter = p.newRateLimiter
	}
	return d.WithDefaults()
}

// isEnabled reports whether the feature gates let the controller of a row run.
func (p components) isEnabled(row controllerRow) bool {
	if row.gate != "" && !p.Gates.Enabled(row.gate) {
		return false
	}
	return row.kind == "" || gatedkinds.IsServed(row.kind, p.Gates.Enabled)
}

// requiredKinds returns the kinds whose CRDs the controller of a row waits for, each in the newest version of the scheme.
func (p components) requiredKinds(row controllerRow) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, name := range append([]string{row.kind}, row.needs...) {
		for _, version := range []schema.GroupVersion{kruise.GroupVersion, v1alpha1.GroupVersion, policyv1beta1.GroupVersion} {
			if kind := version.WithKind(name); p.mgr.GetScheme().Recognizes(kind) {
				out = append(out, kind)
				break
			}
		}
	}
	return out
}
