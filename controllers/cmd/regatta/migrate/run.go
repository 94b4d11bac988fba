// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// carryOut does what a plan says. Each step leaves the cluster so that a later run goes on from there.
func (m *migration) carryOut(ctx context.Context, p *plan) error {
	p.record = newRecord(p.target.kind, p.total)
	if err := m.prepareTarget(ctx, p); err != nil {
		return asRefusal(err)
	}
	if err := m.createBudgets(ctx, p.references, p.target); err != nil {
		return asRefusal(err)
	}
	for _, step := range []func(context.Context, *plan) error{m.pauseAutoscalers, m.claimWorkloads, m.movePods, m.moveAutoscalers, m.endMigration} {
		if err := step(ctx, p); err != nil {
			return asRefusal(p.explainError(err))
		}
	}
	return nil
}

// explainError adds to an error what a user has to know who stops here.
func (p *plan) explainError(err error) error {
	out := fmt.Errorf("%w; run the command again to go on, or go back with regatta migrate %s", err, p.target.commandArgument())
	var paused []string
	for _, hpa := range p.autoscalers {
		if strings.HasSuffix(hpa.Spec.ScaleTargetRef.Name, pausedSuffix) {
			paused = append(paused, hpa.Name)
		}
	}
	if len(paused) > 0 {
		out = fmt.Errorf("%w; until then HorizontalPodAutoscaler %s is paused", out, strings.Join(paused, ", "))
	}
	return out
}

// asRefusal keeps the exit code of an error that has more words now, and gives others theirs.
func asRefusal(err error) error {
	var coded exit.Error
	if errors.As(err, &coded) {
		return exit.Error{Code: coded.Code, Err: err}
	}
	return edit.AsRefusal(err)
}

// prepareTarget creates the target with 0 pods, or gives it the template of the source. Nothing else has changed yet if that fails.
func (m *migration) prepareTarget(ctx context.Context, p *plan) error {
	if !p.converted {
		return nil
	}
	if p.exists {
		return m.convertTarget(ctx, p)
	}
	if err := writeRecord(p.target, p.record); err != nil {
		return err
	}
	if err := m.client.Create(ctx, p.target.object); err != nil {
		return fmt.Errorf("creating %s: %w", p.target, err)
	}
	m.printLine("%s created", p.target)
	return nil
}

// convertTarget gives the target, which has no pods, the template of the source. If another client, such as its controller, writes it at
// the same time, it does so again.
func (m *migration) convertTarget(ctx context.Context, p *plan) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := m.readAgain(ctx, p.target); err != nil {
			return err
		}
		if c := p.target.countPods(); c.desired > 0 || c.existing > 0 {
			return exit.RefusalErrorf("%s has %s now; run the command again", p.target, countPods(max(c.desired, c.existing)))
		}
		target, err := convertWorkload(p.source, p.target, p.label)
		if err != nil {
			return exit.RefusalError(err)
		}
		if err := writeRecord(target, p.record); err != nil {
			return err
		}
		if err := m.client.Update(ctx, target.object); err != nil {
			return fmt.Errorf("changing %s: %w", target, err)
		}
		p.target = target
		return nil
	})
	if err == nil {
		m.printLine("%s has the template of %s", p.target, p.source)
	}
	return err
}

// claimWorkloads records the migration in both workloads, so that another run of the command ends. The record also has how many pods
// there are to be, which the replicas of the source will no longer tell.
func (m *migration) claimWorkloads(ctx context.Context, p *plan) error {
	for _, w := range []workload{p.source, p.target} {
		err := m.changeWorkload(ctx, w, func(w workload) error {
			if w.kind == p.source.kind {
				p.total = max(p.total, w.countPods().desired) // an autoscaler may have scaled it up just before it was paused
				p.record.Replicas = p.total
			}
			of := p.record
			var err error
			if of.Template, err = hashTemplate(w); err != nil {
				return err
			}
			return writeRecord(w, of)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endMigration removes the records, and deletes the source if the user asked for that.
func (m *migration) endMigration(ctx context.Context, p *plan) error {
	for _, w := range []workload{p.source, p.target} {
		err := m.changeWorkload(ctx, w, func(w workload) error {
			annotations := keepAll(w.object.GetAnnotations())
			delete(annotations, recordKey)
			w.object.SetAnnotations(annotations)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if p.deleteSource {
		if err := m.deleteSource(ctx, p.source); err != nil {
			return err
		}
	}
	m.printLine("%s has all %s", p.target, countPods(p.total))
	return nil
}

// deleteSource deletes a workload without pods.
func (m *migration) deleteSource(ctx context.Context, w workload) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := m.readAgain(ctx, w); err != nil {
			return err
		}
		if n := w.countPods().desired; n > 0 {
			return exit.RefusalErrorf("spec.replicas of %s was set to %d by someone else, so it is not deleted", w, n)
		}
		uid, version := w.object.GetUID(), w.object.GetResourceVersion()
		if err := m.client.Delete(ctx, w.object, client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", w, err)
		}
		m.printLine("%s deleted", w)
		return nil
	})
}

// finishMoved does what may be left of a migration whose pods have all moved.
func (m *migration) finishMoved(ctx context.Context, p *plan) error {
	m.printLine("The pods of %s have moved to %s already.", p.source, p.target)
	p.autoscalers = slices.DeleteFunc(p.autoscalers, func(hpa autoscalingv2.HorizontalPodAutoscaler) bool {
		return !strings.HasSuffix(hpa.Spec.ScaleTargetRef.Name, pausedSuffix)
	})
	if err := m.moveAutoscalers(ctx, p); err != nil {
		return asRefusal(err)
	}
	return asRefusal(m.endMigration(ctx, p))
}

// changeWorkload reads a workload and changes it. If another client writes it at the same time, it does so again.
func (m *migration) changeWorkload(ctx context.Context, w workload, change func(workload) error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := m.readAgain(ctx, w); err != nil {
			return err
		}
		before := w.copyObject()
		if err := change(w); err != nil {
			return err
		}
		if err := m.client.Patch(ctx, w.object, client.MergeFromWithOptions(before.object, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("changing %s: %w", w, err)
		}
		return nil
	})
}

// readAgain reads a workload again. It must be the same one.
func (m *migration) readAgain(ctx context.Context, w workload) error {
	name, now := w.String(), newWorkload(w.kind) // a new object: decoding keeps fields that are no longer there
	err := m.client.Get(ctx, client.ObjectKeyFromObject(w.object), now.object)
	switch {
	case apierrors.IsNotFound(err):
		return exit.RefusalErrorf("%s was deleted", name)
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	case now.object.GetUID() != w.object.GetUID():
		return exit.RefusalErrorf("%s was deleted, and another one was created by its name", name)
	case now.object.GetDeletionTimestamp() != nil:
		return exit.RefusalErrorf("%s is being deleted", name)
	}
	w.replaceWith(now)
	return nil
}

// progress is how far a migration has come. Pods that come and go are no progress.
type progress struct {
	// available is the most pods of the target that were available, and existing the fewest pods of the source.
	available, existing int
	at                  time.Time
}

func (p *progress) updateProgress(now time.Time, source, target counts) {
	if target.available > p.available || source.existing < p.existing {
		p.available, p.existing, p.at = max(p.available, target.available), min(p.existing, source.existing), now
	}
}

// movePods moves the pods step by step. It waits between the steps, and says what for.
func (m *migration) movePods(ctx context.Context, p *plan) error {
	steady := &steadiness{least: m.stableFor}
	reached := progress{existing: p.source.countPods().existing, at: time.Now()}
	p.scaledTo = p.source.countPods().desired
	waits, told := "", time.Now()
	for {
		done, wait, err := m.movePodsOnce(ctx, p, steady)
		if err != nil || done {
			return err
		}
		now := time.Now()
		reached.updateProgress(now, p.source.countPods(), p.target.countPods())
		if wait != waits && now.Sub(told) > quiet || now.Sub(told) > reminder {
			m.printLine("waiting: %s", wait)
			waits, told = wait, now
		}
		if limit := m.timeout + m.stableFor + p.target.minReady(); m.timeout > 0 && now.Sub(reached.at) > limit {
			return exit.RefusalErrorf("no pod moved for %s: %s; regatta why %s, regatta why %s or kubectl describe of a pod says more", limit, wait, p.source.commandArgument(), p.target.commandArgument())
		}
		select {
		case <-ctx.Done():
			return exit.RefusalErrorf("interrupted")
		case <-time.After(m.poll):
		}
	}
}

// While nothing moves, a line says why: quiet after the last line if the reason is another one, and reminder after it if not.
const (
	quiet    = 5 * time.Second
	reminder = 30 * time.Second
)

// movePodsOnce makes one move, if there is one now. It returns what it waits for.
func (m *migration) movePodsOnce(ctx context.Context, p *plan, steady *steadiness) (done bool, wait string, err error) {
	for _, w := range []workload{p.source, p.target} {
		var refused exit.Error
		switch err := m.readAgain(ctx, w); {
		case errors.As(err, &refused) || apierrors.IsForbidden(err):
			return false, "", err
		case err != nil: // the API server may answer again
			return false, err.Error(), nil
		}
		if err := errors.Join(checkID(w, p.record.ID), checkTemplate(w)); err != nil {
			return false, "", err
		}
	}
	source, target := p.source.countPods(), p.target.countPods()
	if source.desired > p.scaledTo {
		return false, "", exit.RefusalErrorf("spec.replicas of %s was set to %d by someone else, such as a tool that applies its manifest", p.source, source.desired)
	}
	next := nextMove(p.total, p.step, source, target, steady.observeCount(time.Now(), target.available))
	for _, c := range []struct {
		of       workload
		from, to int
	}{{p.source, source.desired, next.source}, {p.target, target.desired, next.target}} {
		if c.from == c.to {
			continue
		}
		before := c.of.copyObject()
		c.of.setReplicas(c.to)
		err := m.client.Patch(ctx, c.of.object, client.MergeFromWithOptions(before.object, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) { // the counts are old
			return false, "the counts of pods changed", nil
		}
		if err != nil {
			return false, "", fmt.Errorf("changing spec.replicas of %s: %w", c.of, err)
		}
		m.printLine("%s: %d -> %s", c.of, c.from, countPods(c.to))
	}
	p.scaledTo = next.source
	return next.done, describeWait(p), nil
}

// describeWait says what a migration waits for.
func describeWait(p *plan) string {
	source, target := p.source.countPods(), p.target.countPods()
	switch {
	case target.available < target.desired:
		return fmt.Sprintf("%d of %d pods of %s are available", target.available, target.desired, p.target)
	case target.updated < target.desired:
		return fmt.Sprintf("%d of %d pods of %s have its template", target.updated, target.desired, p.target)
	case source.existing > source.desired:
		return fmt.Sprintf("%s has %s, and is to have %d", p.source, countPods(source.existing), source.desired)
	case !source.observed || !target.observed:
		return fmt.Sprintf("the controllers have not seen the present spec of %s and %s yet", p.source, p.target)
	}
	return fmt.Sprintf("the pods of %s are to stay available for a while", p.target)
}
