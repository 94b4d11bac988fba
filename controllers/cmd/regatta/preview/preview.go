// SPDX-License-Identifier: Apache-2.0

// Package preview simulates the rollout that a change of a workload would begin, with the objects
// and the policies that the cluster has now. It changes nothing.
package preview

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/shipped"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/simulate"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// patience is how long nothing may happen in a simulation before the rollout counts as stuck.
const patience = 366 * 24 * time.Hour

// Options are what a preview depends on besides the cluster.
type Options struct {
	// Builtin has the built-in policies.
	Builtin fs.FS
	// ManagerNamespace is the namespace of the manager.
	ManagerNamespace string
	// Now is the time at which the rollout would begin.
	Now time.Time
}

// SimulateRollout simulates the rollout of a workload as it would be after a change, and writes how it goes to out.
// Notes that a reader needs go to notes.
func (o Options) SimulateRollout(ctx context.Context, config *rest.Config, changed *unstructured.Unstructured, out, notes io.Writer) error {
	set, err := o.loadBundles(ctx, config, changed.GetNamespace())
	if err != nil {
		return fmt.Errorf("reading the policies of the cluster: %w", err)
	}
	reader := objectReader{notes: notes}
	if reader.client, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	gates, err := reader.readGates(ctx, o.ManagerNamespace)
	if err != nil {
		return err
	}
	objects, err := reader.readFleet(ctx, changed.GetNamespace())
	if err != nil {
		return err
	}
	if hasNoPods(changed, objects) {
		_, err := fmt.Fprintln(out, "no pod changes: there is none")
		return err
	}
	source := simulate.Source{Applied: changed, Objects: objects, Namespace: changed.GetNamespace(), Replicas: -1, Gates: gates}
	fleet, warnings, err := source.LoadFleet(ctx, o.Builtin, o.Now)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintln(notes, "warning:", w)
	}
	if n := countNotReady(fleet.Pods); n > 0 {
		fmt.Fprintf(notes, "warning: %s not ready now; the preview assumes that pods become ready\n", map[bool]string{true: "1 pod is", false: fmt.Sprintf("%d pods are", n)}[n == 1])
	}
	readyAfter := typicalReadyTime(fleet.Pods)
	run, err := simulation.New(o.Builtin, set, fleet, o.Now, simulation.WithReadyAfter(readyAfter), simulation.WithPatience(patience), simulation.WithSeed(1), simulation.WithGates(gates))
	if err != nil {
		return err
	}
	defer run.Close()
	report, err := run.Run(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, summarizeReport(report, readyAfter)); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	var text strings.Builder
	if err := (simulate.Text{Report: report, By: "zone"}).WriteReport(&text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(out, edit.EscapeText(strings.TrimSuffix(line, "\n"))); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

// hasNoPods is true if none of the objects is a pod that a workload controls.
func hasNoPods(workload *unstructured.Unstructured, objects []*unstructured.Unstructured) bool {
	return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Pod" && metav1.IsControlledBy(o, workload)
	})
}

// countNotReady counts the pods that are not ready.
func countNotReady(pods []*corev1.Pod) int {
	n := 0
	for _, p := range pods {
		if !availability.HasReadyCondition(p) {
			n++
		}
	}
	return n
}

// loadBundles returns the bundles that decide about a namespace, canaries among them: those of the platform and its own.
func (o Options) loadBundles(ctx context.Context, config *rest.Config, namespace string) (bundle.Set, error) {
	platform, err := shipped.NewBundles(config, o.ManagerNamespace)
	if err != nil {
		return nil, err
	}
	set, err := platform.DecidingBundles(ctx)
	if err != nil {
		return nil, err
	}
	own, err := platform.OfNamespace(namespace).DecidingBundles(ctx)
	return append(set, own...), err
}

// objectReader reads the objects of a cluster that rollouts depend on.
type objectReader struct {
	client dynamic.Interface
	notes  io.Writer
}

// readGates reads the feature gates from the flags of the manager. Where they cannot be read, it takes the
// defaults and says so.
func (r objectReader) readGates(ctx context.Context, namespace string) (features.Gates, error) {
	gates, err := features.New()
	if err != nil {
		return gates, err
	}
	found, err := r.client.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(namespace).Get(ctx, preflight.ManagerDeployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		fmt.Fprintf(r.notes, "warning: Deployment %s/%s cannot be read, so the preview assumes that the feature gates have their defaults\n", namespace, preflight.ManagerDeployment)
		return gates, nil
	}
	if err != nil {
		return gates, fmt.Errorf("reading the feature gates of the manager: %w", err)
	}
	manager := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, manager); err != nil {
		return gates, fmt.Errorf("reading the feature gates of the manager: %w", err)
	}
	if err := gates.Set(preflight.ManagerFlags(manager)["feature-gates"]); err != nil {
		return gates, fmt.Errorf("reading the feature gates of the manager: %w", err)
	}
	return gates, nil
}

// summarizeReport says in a line what changes and when the rollout ends.
func summarizeReport(r simulation.Report, readyAfter time.Duration) string {
	var inPlace, recreated int
	for _, step := range r.Steps {
		for _, pod := range step.Moved {
			if pod.InPlace {
				inPlace++
			} else {
				recreated++
			}
		}
	}
	what := fmt.Sprintf("%s would change in place, %s would be recreated", countPods(inPlace), countPods(recreated))
	switch {
	case inPlace+recreated == 0 && r.End.How == simulation.Stuck:
		return "no pod changes, since the rollout waits"
	case inPlace+recreated == 0:
		return "no pod changes"
	case recreated == 0:
		what = countPods(inPlace) + " would change in place"
	case inPlace == 0:
		what = countPods(recreated) + " would be recreated"
	}
	if r.End.How == simulation.Stuck {
		return what + "; then the rollout waits"
	}
	return fmt.Sprintf("%s, within %s if a pod is ready after %s", what, r.TotalDuration().Round(time.Second), readyAfter)
}

func countPods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// defaultReadyTime is how long a pod takes to become ready if no pod shows it.
const defaultReadyTime = 30 * time.Second

// typicalReadyTime is the median of how long the pods took to become ready. Pods whose containers restarted
// do not count.
func typicalReadyTime(pods []*corev1.Pod) time.Duration {
	var took []time.Duration
	for _, p := range pods {
		if d, ok := readyTime(p); ok {
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return defaultReadyTime
	}
	slices.Sort(took)
	return max(took[len(took)/2].Round(time.Second), time.Second)
}

// New makes the preview of commands that change workloads. The rollout begins when the command runs.
func New(builtin fs.FS) edit.Preview {
	return func(ctx context.Context, config *rest.Config, manager string, changed *unstructured.Unstructured, out, notes io.Writer) error {
		o := Options{Builtin: builtin, ManagerNamespace: manager, Now: time.Now().UTC().Truncate(time.Second)}
		return o.SimulateRollout(ctx, config, changed, out, notes)
	}
}
