// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// carryOut does what a plan says. Each step leaves the cluster so that a later run goes on from there.
func (m *migration) carryOut(ctx context.Context, p *plan) error {
	if err := m.pauseAutoscalers(ctx, p.autoscalers); err != nil {
		return asRefusal(err)
	}
	if err := m.beginMigration(ctx, p); err != nil {
		return asRefusal(err)
	}
	if err := m.createBudgets(ctx, p.references, p.target); err != nil {
		return asRefusal(err)
	}
	if err := m.movePods(ctx, p); err != nil {
		return asRefusal(err)
	}
	if err := m.moveAutoscalers(ctx, p.autoscalers, p.target); err != nil {
		return asRefusal(err)
	}
	return asRefusal(m.endMigration(ctx, p))
}

// asRefusal gives an error the exit code of a refusal if a webhook, a policy, a quota or the permissions of the user refuse a write.
func asRefusal(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return exit.RefusalError(err)
	}
	return err
}

// beginMigration records how many pods there are to be, which the replicas of the source will no longer tell, and then creates the target.
func (m *migration) beginMigration(ctx context.Context, p *plan) error {
	record := func(w workload) {
		annotations := maps.Clone(w.object.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[replicasKey] = strconv.Itoa(p.total)
		w.object.SetAnnotations(annotations)
	}
	err := m.changeWorkload(ctx, p.source, func(w workload) {
		p.total = max(p.total, w.countPods().desired) // an autoscaler may have scaled it up just before it was paused
		record(w)
	})
	if err != nil {
		return err
	}
	if p.resumed {
		return nil
	}
	record(p.target)
	if p.exists {
		if err := m.client.Update(ctx, p.target.object); err != nil {
			return fmt.Errorf("changing %s: %w", p.target, err)
		}
		m.printLine("%s has the template of %s", p.target, p.source)
		return nil
	}
	if err := m.client.Create(ctx, p.target.object); err != nil {
		return fmt.Errorf("creating %s: %w", p.target, err)
	}
	m.printLine("%s created", p.target)
	return nil
}

// endMigration forgets the migration, and deletes the source if the user asked for that.
func (m *migration) endMigration(ctx context.Context, p *plan) error {
	for _, w := range []workload{p.source, p.target} { // the target last: by its annotation a later run would go on
		err := m.changeWorkload(ctx, w, func(w workload) {
			annotations := w.object.GetAnnotations()
			delete(annotations, replicasKey)
			w.object.SetAnnotations(annotations)
		})
		if err != nil {
			return err
		}
	}
	if p.deleteSource {
		uid := p.source.object.GetUID()
		if err := m.client.Delete(ctx, p.source.object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", p.source, err)
		}
		m.printLine("%s deleted", p.source)
	}
	m.printLine("%s has all %s", p.target, countPods(p.total))
	return nil
}

// changeWorkload reads a workload and changes it. If another client writes it at the same time, it does so again.
func (m *migration) changeWorkload(ctx context.Context, w workload, change func(workload)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := m.readAgain(ctx, w); err != nil {
			return err
		}
		before := w.copyObject()
		change(w)
		if err := m.client.Patch(ctx, w.object, client.MergeFromWithOptions(before.object, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("changing %s: %w", w, err)
		}
		return nil
	})
}

// readAgain reads a workload again. It must be the same one.
func (m *migration) readAgain(ctx context.Context, w workload) error {
	uid := w.object.GetUID()
	err := m.client.Get(ctx, client.ObjectKeyFromObject(w.object), w.object)
	if err == nil && w.object.GetUID() != uid {
		return exit.RefusalErrorf("%s was deleted, and another one was created by its name", w)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", w, err)
	}
	return nil
}

// movePods moves the pods step by step. It waits between the steps.
func (m *migration) movePods(ctx context.Context, p *plan) error {
	last, moved := counts{}, time.Now()
	for {
		done, changed, err := m.movePodsOnce(ctx, p)
		if err != nil || done {
			return err
		}
		now := p.target.countPods()
		if changed || now.available > last.available {
			moved = time.Now()
		}
		last = now
		if m.timeout > 0 && time.Since(moved) > m.timeout {
			return exit.RefusalErrorf("no pod moved for %s: %s; run the command again to go on, or ask regatta why %s", m.timeout, describeWait(p), p.target.commandArgument())
		}
		select {
		case <-ctx.Done():
			return exit.RefusalError(errors.New("interrupted; run the command again to go on"))
		case <-time.After(m.poll):
		}
	}
}

// movePodsOnce makes one move, if there is one now.
func (m *migration) movePodsOnce(ctx context.Context, p *plan) (done, changed bool, err error) {
	for _, w := range []workload{p.source, p.target} {
		if err := m.readAgain(ctx, w); err != nil {
			return false, false, err
		}
	}
	source, target := p.source.countPods(), p.target.countPods()
	next := nextMove(p.total, p.step, source, target)
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
			return false, false, nil
		}
		if err != nil {
			return false, false, fmt.Errorf("changing spec.replicas of %s: %w", c.of, err)
		}
		m.printLine("%s: %d -> %s", c.of, c.from, countPods(c.to))
		changed = true
	}
	return next.done, changed, nil
}

// describeWait says what a migration waits for.
func describeWait(p *plan) string {
	source, target := p.source.countPods(), p.target.countPods()
	switch {
	case target.available < target.desired:
		return fmt.Sprintf("%d of %s of %s are available", target.available, countPods(target.desired), p.target)
	case source.existing > source.desired:
		return fmt.Sprintf("%s has %s, and is to have %d", p.source, countPods(source.existing), source.desired)
	}
	return fmt.Sprintf("the controllers have not counted the pods of %s and %s yet", p.source, p.target)
}
