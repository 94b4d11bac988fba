// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// buildPlan reads the cluster and decides what to do. It changes nothing.
func (o *options) buildPlan(ctx context.Context, m *migration, about edit.Reference) (*plan, error) {
	source, err := m.readWorkload(ctx, about.Kind.Kind, about.Name)
	if err != nil {
		return nil, err
	}
	if source.object.GetUID() == "" {
		return nil, fmt.Errorf("there is no %s %s in namespace %s", about.Kind.Kind, about.Name, m.namespace)
	}
	found, err := m.readWorkload(ctx, otherKind(about.Kind), about.Name)
	if err != nil {
		return nil, err
	}
	if err := checkOwners(source, found); err != nil {
		return nil, exit.RefusalError(err)
	}
	p := &plan{source: source, target: found, exists: found.object.GetUID() != "", deleteSource: o.deleteSource, label: o.label, lost: listLostFields(source)}
	if err := p.findUnfinished(); err != nil {
		return nil, err
	}
	if p.step, err = o.resolveStep(p.total); err != nil {
		return nil, exit.UsageError(err)
	}
	if p.converted && !p.moved {
		if err := m.waitObserved(ctx, source); err != nil {
			return nil, err
		}
		if err := checkSource(source, found); err != nil {
			return nil, exit.RefusalError(err)
		}
		if p.target, err = convertWorkload(source, found, o.label); err != nil {
			return nil, exit.RefusalError(err)
		}
	}
	p.references, err = m.readReferences(ctx, source, p.target)
	return p, err
}

// findUnfinished finds a migration that an earlier run began, in either direction, and how many pods there are to be.
func (p *plan) findUnfinished() error {
	begun, err := readRecord(p.source)
	if err != nil {
		return err
	}
	also, err := readRecord(p.target)
	if err != nil {
		return err
	}
	s, t := p.source.countPods(), counts{}
	if p.exists {
		t = p.target.countPods()
	}
	p.total = s.desired
	if begun == nil && s.desired == 0 && s.existing == 0 && t.desired > 0 {
		p.moved, p.total = true, t.desired
		return nil
	}
	if p.converted = t.desired == 0 && t.existing == 0 || begun == nil && also == nil; p.converted {
		// The replicas of the source were recorded if pods moved and the target was deleted, or has lost them.
		if begun != nil && (also != nil || begun.To == p.target.kind) {
			p.total, p.resumed = max(p.total, begun.Replicas), true
		}
		return nil
	}
	// Both have pods, or only the target has. A run that was cut off may have recorded itself in one of the two.
	p.resumed = true
	for _, r := range []*record{begun, also} {
		if r != nil {
			p.total = max(p.total, r.Replicas)
		}
	}
	if err := checkTemplate(p.source); err != nil {
		return err
	}
	if begun == nil || begun.To == p.target.kind {
		return checkTemplate(p.target)
	}
	return nil // the way back, to the template that the target has
}

// checkOwners refuses workloads that another object writes, or that are being deleted.
func checkOwners(all ...workload) error {
	for _, w := range all {
		if owner := metav1.GetControllerOf(w.object); owner != nil {
			return fmt.Errorf("%s is of %s %s, which would undo the change", w, owner.Kind, owner.Name)
		}
		if w.object.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s is being deleted", w)
		}
	}
	return nil
}

// checkSource refuses a migration that cannot begin as the workloads are.
func checkSource(source, found workload) error {
	if err := source.checkRollout(); err != nil {
		return err
	}
	for _, w := range []workload{source, found} {
		if w.object.GetUID() == "" {
			continue
		}
		if err := w.checkPartition(); err != nil {
			return err
		}
		if w.isPaused() {
			return fmt.Errorf("the rollout of %s is paused; resume it first, with regatta rollout resume %s", w, w.commandArgument())
		}
	}
	c := source.countPods()
	if d, ok := source.object.(*appsv1.Deployment); ok && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && (c.desired > 0 || c.existing > 0) {
		return fmt.Errorf("spec.strategy.type of %s is Recreate, so that pods of two revisions never run together, and a migration has pods of both workloads; "+
			"change it if they may, or scale %s to 0 first", source, source)
	}
	for _, field := range listLostFields(source) {
		if field == "spec.volumeClaimTemplates" {
			return fmt.Errorf("%s has %s, and a Deployment has no claims of its own", source, field)
		}
	}
	if found.object.GetUID() == "" {
		return nil
	}
	if c := found.countPods(); c.desired > 0 || c.existing > 0 {
		return fmt.Errorf("%s exists and has %s, and no migration between the two is under way; if its pods may go, scale it to 0 first", found, countPods(max(c.desired, c.existing)))
	}
	return nil
}

// readWorkload reads a workload; an empty one if there is none.
func (m *migration) readWorkload(ctx context.Context, kind, name string) (workload, error) {
	w := newWorkload(kind)
	err := m.client.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: name}, w.object)
	if apierrors.IsNotFound(err) {
		w = newWorkload(kind)
		w.object.SetName(name)
		return w, nil
	}
	if err != nil {
		return w, fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	return w, nil
}

// observePatience is how long a controller may take to see a change of a workload. An interrupted run may just have changed it.
const observePatience = 10 * time.Second

// waitObserved waits until the controller of a workload has seen its present spec, but not long.
func (m *migration) waitObserved(ctx context.Context, w workload) error {
	deadline := time.Now().Add(observePatience)
	for !w.countPods().observed && time.Now().Before(deadline) {
		select {
		case <-ctx.Done():
			return exit.RefusalErrorf("interrupted")
		case <-time.After(m.poll):
		}
		if err := m.readAgain(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// checkReferences refuses a migration after which an object would not find the pods.
func (p *plan) checkReferences() error {
	if len(p.losing) > 0 {
		return fmt.Errorf("these would not select the pods of %s: %s; change their selectors, or choose another --label", p.target, strings.Join(p.losing, ", "))
	}
	if len(p.gaining) > 0 {
		return fmt.Errorf("these would select the pods of %s and do not select those of %s: %s; change their selectors, or choose another --label", p.target, p.source, strings.Join(p.gaining, ", "))
	}
	if len(p.naming) > 0 {
		return fmt.Errorf("these name %s and would not apply to the new pods: %s; delete them, or create some for %s and delete these", p.source, strings.Join(p.naming, ", "), p.target)
	}
	if len(p.blocking) > 0 {
		return fmt.Errorf("these would refuse the deletion of the last pods of %s: %s; use maxUnavailable, or a percentage", p.source, strings.Join(p.blocking, ", "))
	}
	if len(p.autoscalers) > 1 {
		return fmt.Errorf("there are %d HorizontalPodAutoscalers of %s and %s, want one at most: %s", len(p.autoscalers), p.source, p.target, joinAutoscalers(p.autoscalers))
	}
	return nil
}

func joinAutoscalers(all []autoscalingv2.HorizontalPodAutoscaler) string {
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return strings.Join(names, ", ")
}
