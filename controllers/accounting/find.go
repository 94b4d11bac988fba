// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/versions"
)

// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets/status,verbs=get;update;patch

// keep is how long a budget that was written is remembered, with the pods recorded in it. The cache
// shows the write long before that, or is so late that the next write ends in a conflict.
const keep = time.Minute

// cacheFor is how long a cache may take to answer. A cache answers at once unless it is not filled
// yet.
const cacheFor = 200 * time.Millisecond

// newestBudget returns the budget as the cache has it, or as it was written last. If neither has the
// budget, it is read from the API server.
func (l *Accountant) newestBudget(ctx context.Context, key types.NamespacedName) (budget *policy.PodUnavailableBudget, live bool, err error) {
	cached := &policy.PodUnavailableBudget{}
	soon, cancel := context.WithTimeout(ctx, cacheFor)
	defer cancel()
	if err := l.client.Get(soon, key, cached); err != nil {
		// The cache may not have the budget yet, or may not be filled because its watch cannot be established.
		budget, err = l.readLiveBudget(ctx, key)
		return budget, true, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.own[key]
	if ok && versions.IsNewer(own.budget, cached) {
		return own.budget, false, nil
	}
	delete(l.own, key)
	return cached, false, nil
}

// readLiveBudget reads the budget from the API server; nil if there is no such budget.
func (l *Accountant) readLiveBudget(ctx context.Context, key types.NamespacedName) (*policy.PodUnavailableBudget, error) {
	budget := &policy.PodUnavailableBudget{}
	err := l.live.Get(ctx, key, budget)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PodUnavailableBudget %s past the cache: %w", key, err)
	}
	return budget, nil
}

// recordedIn reports whether this ledger recorded a pod, by a write or in a draft.
func (l *Accountant) recordedIn(d *budgetDraft, pod types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.pods[pod]
	return ok || slices.Contains(d.pods, pod)
}

// trackWritten notes a draft that was written.
func (l *Accountant) trackWritten(key types.NamespacedName, d *budgetDraft) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own[key] = writtenBudget{d.budget, now}
	for _, uid := range d.pods {
		l.pods[uid] = now
	}
	if now.Sub(l.swept) < keep {
		return
	}
	l.swept = now
	for key, w := range l.own {
		if now.Sub(w.at) > keep {
			delete(l.own, key)
		}
	}
	for uid, at := range l.pods {
		if now.Sub(at) > keep {
			delete(l.pods, uid)
		}
	}
}
