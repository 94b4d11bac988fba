// SPDX-License-Identifier: Apache-2.0

package images

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/versions"
	"github.com/regatta-sh/regatta/nodeagent/message"
)

// lookAgain is how soon a runtime that does not answer is asked again.
const lookAgain = 5 * time.Second

// Reconcile starts and ends pulls as the NodeImage says, and writes their progress.
func (a *Agent) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	node := &kruise.NodeImage{}
	err := a.client.Get(ctx, req.NamespacedName, node)
	if apierrors.IsNotFound(err) || err == nil && node.DeletionTimestamp != nil {
		a.syncPulls(&kruise.NodeImage{})
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading NodeImage %s: %w", req.Name, err)
	}
	node = a.newestNodeImage(node)
	a.syncPulls(node)
	missing := a.checkImageRuntime(ctx, node)
	changed := node.DeepCopy()
	a.fillStatus(changed, missing)
	var after time.Duration
	if missing != "" {
		after = lookAgain
	}
	if equality.Semantic.DeepEqual(node.Status, changed.Status) {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	node.Status.Desired = -1 // the schema requires the number, so it is in every patch
	if err := a.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
		return requeue.ReconcileResult(ctx, node, after, fmt.Errorf("writing the status of NodeImage %s: %w", req.Name, err))
	}
	a.last = changed
	return reconcile.Result{RequeueAfter: after}, nil
}

// newestNodeImage returns the NodeImage as the cache has it, or as it was written last, so that nothing
// is written twice.
func (a *Agent) newestNodeImage(cached *kruise.NodeImage) *kruise.NodeImage {
	if a.last != nil && versions.IsNewer(a.last, cached) {
		return a.last.DeepCopy()
	}
	a.last = nil
	return cached
}

// checkImageRuntime returns why the node can pull no image, and reports it once.
func (a *Agent) checkImageRuntime(ctx context.Context, node *kruise.NodeImage) string {
	why := ""
	if _, err := a.node.ImageRuntime(ctx); err != nil {
		why = err.Error()
	}
	a.mu.Lock()
	news := why != "" && why != a.told
	a.told = why
	a.mu.Unlock()
	if news {
		a.events.Event(node, corev1.EventTypeWarning, "ContainerRuntimeMissing", why)
	}
	return why
}

// syncPulls starts the pulls that are wanted and not finished, and ends those that are not wanted any more.
func (a *Agent) syncPulls(node *kruise.NodeImage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	type wanted struct {
		key  key
		spec kruise.ImageTagSpec
	}
	var all []wanted
	specs := map[key]kruise.ImageTagSpec{}
	for name, image := range node.Spec.Images {
		for _, tag := range image.Tags {
			all = append(all, wanted{key{name, tag.Tag}, tag})
			specs[key{name, tag.Tag}] = tag
		}
	}
	maps.DeleteFunc(a.pulls, func(k key, p *pull) bool {
		spec, still := specs[k]
		if still && spec.Version == p.spec.Version {
			p.applyEdit(spec, node.Spec.Images[k.image])
			return false
		}
		p.cancel()
		return true
	})
	// Tags are pulled in the order in which they were requested.
	slices.SortFunc(all, func(a, b wanted) int {
		return cmp.Or(ptr.Deref(a.spec.CreatedAt, metav1.Time{}).Compare(ptr.Deref(b.spec.CreatedAt, metav1.Time{}).Time),
			cmp.Compare(a.key.image, b.key.image), cmp.Compare(a.key.tag, b.key.tag))
	})
	for _, w := range all {
		if a.pulls[w.key] != nil || isFinished(node, w.key, w.spec.Version) {
			continue
		}
		a.pulls[w.key] = a.beginPull(node, w.key, w.spec, node.Spec.Images[w.key.image])
	}
}

// isFinished reports whether the status has the end of a version already.
func isFinished(node *kruise.NodeImage, k key, version int64) bool {
	s := statusOf(node, k)
	return s != nil && s.Version == version && (s.Phase == kruise.ImagePhaseSucceeded || s.Phase == kruise.ImagePhaseFailed)
}

func statusOf(node *kruise.NodeImage, k key) *kruise.ImageTagStatus {
	tags := node.Status.ImageStatuses[k.image].Tags
	if i := slices.IndexFunc(tags, func(s kruise.ImageTagStatus) bool { return s.Tag == k.tag }); i >= 0 {
		return &tags[i]
	}
	return nil
}

// fillStatus sets the status: the pulls of this process, and those that were finished before.
func (a *Agent) fillStatus(node *kruise.NodeImage, missing string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &node.Status
	before := node.DeepCopy()
	s.Desired, s.Succeeded, s.Failed, s.Pulling, s.Waiting = 0, 0, 0, 0, 0
	s.ImageStatuses = nil
	for _, image := range slices.Sorted(maps.Keys(node.Spec.Images)) {
		var tags []kruise.ImageTagStatus
		for _, tag := range node.Spec.Images[image].Tags {
			k := key{image, tag.Tag}
			s.Desired++
			var t kruise.ImageTagStatus
			switch old := statusOf(before, k); {
			case isFinished(before, k, tag.Version): // by this process, an earlier one, or the manager
				t = *old
			case a.pulls[k] != nil:
				t = a.pulls[k].status
			default:
				continue
			}
			countPhase(s, t.Phase)
			tags = append(tags, t)
		}
		if len(tags) > 0 {
			slices.SortFunc(tags, func(a, b kruise.ImageTagStatus) int { return cmp.Compare(a.Tag, b.Tag) })
			if s.ImageStatuses == nil {
				s.ImageStatuses = map[string]kruise.ImageStatus{}
			}
			s.ImageStatuses[image] = kruise.ImageStatus{Tags: tags}
		}
	}
	first := kruise.SyncStatus{Status: kruise.SyncStatusSucceeded}
	if missing != "" {
		first = kruise.SyncStatus{Status: kruise.SyncStatusFailed, Message: message.Truncate(missing)}
	}
	if was := s.FirstSyncStatus; was == nil || was.Status != first.Status || was.Message != first.Message {
		first.SyncAt = ptr.To(metav1.NewTime(a.now()).Rfc3339Copy())
		s.FirstSyncStatus = &first
	}
	tags.SetSummary(s, a.now())
}

func countPhase(s *kruise.NodeImageStatus, phase kruise.ImagePullPhase) {
	switch phase {
	case kruise.ImagePhaseSucceeded:
		s.Succeeded++
	case kruise.ImagePhaseFailed:
		s.Failed++
	case kruise.ImagePhaseWaiting:
		s.Waiting++
	default:
		s.Pulling++
	}
}
