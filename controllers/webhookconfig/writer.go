// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/controllers/workload/coalesce"
)

// Owner is the field manager of all writes.
const Owner = "kruise-protection"

// Reasons of events about the configurations.
const (
	UndecidedReason = "ProtectionUndecided"
	LeftOutReason   = "GuardLeftOut"
	// NotWrittenReason is the reason of an event about a configuration that cannot be written.
	NotWrittenReason = "WebhookNotWritten"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get
// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=get;list;watch

// Writer keeps the configurations of the API server as the policies, the budgets and the SidecarSets require. Only the leader may
// use it, except for AwaitSidecarSet, AwaitObject and AwaitRules.
type Writer struct {
	// Client reads budgets from a cache, and writes.
	Client client.Client
	// Live reads the written objects from the API server.
	Live   client.Reader
	Rules  *Rules
	Config Config
	Events record.EventRecorder
	Now    func() time.Time
	// Undecided is 1 while the policies do not say what is protected.
	Undecided prometheus.Gauge
	// Precision is 0 while exactly the pods that SidecarSets select are sent for them, as far as the API server can evaluate their
	// namespaces. It is 1 while all pods with a label that a SidecarSet selects by are sent, and 2 while all pods are. It may be nil.
	Precision prometheus.Gauge
	// Overridden is how many webhooks differ from the wanted ones, because another client changes them again after each revert. It may
	// be nil.
	Overridden prometheus.Gauge

	claiming sync.Mutex
	// writes bounds how often claims are written, and queue has the requests that wait for it; nil before the first.
	writes *rate.Limiter
	queue  *coalesce.Queue[struct{}, *pendingClaim]
	queued atomic.Int32 // requests in the queue
	// watched reads the configurations from a watch of them; nil before there is one.
	watched client.Reader

	mu sync.Mutex
	// covered are namespaces that were written at the request of CoverNamespace: their budgets may not be
	// in the cache yet.
	covered   map[string]cover
	precision podscope.Precision
	// waiting is true while the cache has no budget of some of them.
	waiting bool
	// claimed is when this process saw the claims of the configuration first, by their IDs.
	claimed map[string]time.Time
	// reported has the last report, by the kind of the object and the reason.
	reported map[string]reportedMessage
	// validating and mutating track changes of the configurations by other clients, overridden is how many of their webhooks
	// differ, and again is when these are reverted next.
	validating, mutating configurationContest
	overridden           int
	again                time.Time
	// policy and binding track changes of the ValidatingAdmissionPolicy and its binding by other clients.
	policy, binding configurationContest
	// wanted are the webhooks that this process has written or waits to write again, nil before the first write. Guards of namespaces
	// whose policies have not answered are read from them, since another client may have changed the webhooks in the API server.
	wanted []admissionv1.ValidatingWebhook
}

// cover is when CoverNamespace was last called for a namespace, and whether the cache has had a budget
// of it since.
type cover struct {
	since time.Time
	seen  bool
}

// unseen is how long a covered namespace is kept without a budget in the cache.
const unseen = 10 * time.Second

// CoverNamespace ensures that the API server sends requests about the pods of a namespace, and returns
// when that is written: a budget must not count before.
func (w *Writer) CoverNamespace(ctx context.Context, namespace string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, known := w.covered[namespace]; known {
		w.markCovered(namespace, cover{since: w.Now(), seen: c.seen})
		return nil // it is in covered, so it was written
	}
	w.markCovered(namespace, cover{since: w.Now()})
	if err := w.syncWithRetry(ctx); err != nil {
		delete(w.covered, namespace)
		return fmt.Errorf("telling the API server about the budgets of namespace %s: %w", namespace, err)
	}
	return nil
}

func (w *Writer) markCovered(namespace string, c cover) {
	if w.covered == nil {
		w.covered = map[string]cover{}
	}
	w.covered[namespace] = c
}

// SyncConfigurations writes the objects that differ from the wanted ones.
func (w *Writer) SyncConfigurations(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.syncWithRetry(ctx)
}

// requeueAfter returns when to reconcile again without a change.
func (w *Writer) requeueAfter() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	after := lookAgain
	if w.waiting || len(w.claimed) > 0 {
		after = unseen
	}
	if !w.again.IsZero() {
		after = min(after, max(time.Second, w.again.Sub(w.Now())))
	}
	return after
}

// syncWithRetry retries if another replica has added a claim meanwhile.
func (w *Writer) syncWithRetry(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.syncOnce(ctx) })
}

func (w *Writer) syncOnce(ctx context.Context) error {
	w.overridden, w.again = 0, time.Time{}
	at, err := w.readConfigurations(ctx)
	if err != nil {
		return err
	}
	answer := w.Rules.RefreshAnswer(ctx)
	w.reportOnce(at.validating, UndecidedReason, answer.Failure, "No policy could decide what is protected, so it stays as it was configured: ")
	w.Undecided.Set(map[bool]float64{true: 1}[answer.Failure != ""])
	if !answer.Known {
		return fmt.Errorf("no policy has said yet what is protected: %s", answer.Failure)
	}
	err = w.settleAnswer(ctx, at, answer)
	if message, known := whyNotWritten(err); known && ctx.Err() == nil { // not if the caller has given up, or the manager ends
		w.reportOnce(at.validating, NotWrittenReason, message, "")
	}
	return err
}

// settleAnswer writes the configurations for an answer of the policies.
func (w *Writer) settleAnswer(ctx context.Context, at *present, answer Answer) error {
	earlier := w.wanted
	if earlier == nil {
		earlier = at.validating.Webhooks
	}
	written, lacking := boundWritten(writtenFor(answer.Unknown, earlier), answer.Guards)
	answer.Guards, answer.Left = slices.Concat(answer.Guards, written), slices.Concat(answer.Left, lacking)
	budgets, err := w.budgetNamespaces(ctx)
	if err != nil {
		return err
	}
	f, left := w.Rules.gatherFacts(answer, w.Config, budgets, at.call)
	known, err := w.readAwaited(ctx, w.Client, at.mutating)
	if err != nil {
		return err
	}
	w.reportOnce(at.validating, LeftOutReason, summarizeTexts(append(left, answer.Left...)), "")
	want, err := renderWebhooks(f.withAwaited(known))
	if err != nil {
		return err
	}
	if !want.isAt(at) { // the cache may lack claimed objects, so it cannot tell which pods need not be sent
		if known, err = w.readAwaited(ctx, w.Live, at.mutating); err != nil {
			return err
		}
		if want, err = renderWebhooks(f.withAwaited(known)); err != nil {
			return err
		}
	}
	if err := w.writeConfigurations(ctx, at, want); err != nil {
		return err
	}
	w.wanted = want.validating
	w.reportPrecision(want.precision)
	for _, ns := range budgets { // the next CoverNamespace of one of them need not write
		if _, known := w.covered[ns]; !known {
			w.markCovered(ns, cover{})
		}
	}
	return nil
}

// reportPrecision reports how exactly the pods that SidecarSets concern are selected.
func (w *Writer) reportPrecision(p podscope.Precision) {
	if w.Precision != nil {
		w.Precision.Set(float64(p))
	}
	if p != w.precision {
		ctrl.Log.Info("New pods are sent for SidecarSets by another precision", "precision", p.String(), "before", w.precision.String())
		w.precision = p
	}
}

// budgetNamespaces returns the namespaces with budgets, and those whose budget will soon be in the
// cache.
func (w *Writer) budgetNamespaces(ctx context.Context) ([]string, error) {
	namespaces := map[string]bool{}
	list := &policyv1beta1.PodUnavailableBudgetList{}
	if err := w.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("listing budgets: %w", err)
	}
	for i := range list.Items {
		namespaces[list.Items[i].Namespace] = true
	}
	w.waiting = false
	for ns, c := range w.covered {
		switch {
		case namespaces[ns]:
			c.seen = true
			w.covered[ns] = c
		case c.seen || w.Now().Sub(c.since) > unseen:
			delete(w.covered, ns) // its last budget is gone, or was never created
			continue
		default:
			w.waiting = true
		}
		namespaces[ns] = true
	}
	return slices.Sorted(maps.Keys(namespaces)), nil
}

// followedKind is a namespaced kind whose objects a step reads.
type followedKind struct {
	name    string
	newList func() client.ObjectList
}

// followed are the namespaced kinds whose objects steps read: pods are sent in the namespaces that
// have such objects.
var followed = map[match.Namespaces]followedKind{
	match.WithSpreads:             {"WorkloadSpread", func() client.ObjectList { return &kruise.WorkloadSpreadList{} }},
	match.WithPersistentPodStates: {"PersistentPodState", func() client.ObjectList { return &kruise.PersistentPodStateList{} }},
}

// namespacesWith are the namespaces that have objects of a kind; all for a kind that is not followed.
func namespacesWith(kind string) match.Namespaces {
	for at, of := range followed {
		if of.name == kind {
			return at
		}
	}
	return match.All
}

// present has the current objects.
type present struct {
	call       clientConfig
	mutating   *admissionv1.MutatingWebhookConfiguration
	validating *admissionv1.ValidatingWebhookConfiguration
	// leftOutMutating and leftOutValidating are the exemptions of other clients, which were removed from the webhooks
	// here.
	leftOutMutating, leftOutValidating exemptions
}

// NotInstalledError reports an object of the chart that does not exist, such as during an uninstall:
// nothing is written then.
type NotInstalledError struct{ Object string }

func (e NotInstalledError) Error() string {
	return e.Object + " does not exist; the chart makes it"
}

// readConfigurations reads the objects that the chart created.
func (w *Writer) readConfigurations(ctx context.Context) (*present, error) {
	at := &present{mutating: &admissionv1.MutatingWebhookConfiguration{}, validating: &admissionv1.ValidatingWebhookConfiguration{}}
	chart := &admissionv1.ValidatingWebhookConfiguration{}
	for _, o := range []struct {
		into       client.Object
		kind, name string
	}{
		{at.mutating, "MutatingWebhookConfiguration", ConfigurationName},
		{at.validating, "ValidatingWebhookConfiguration", ConfigurationName},
		{chart, "ValidatingWebhookConfiguration", certs.ValidatingConfiguration},
	} {
		err := w.Live.Get(ctx, client.ObjectKey{Name: o.name}, o.into)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading %s %s: %w", o.kind, o.name, err)
		}
		if err != nil || o.into.GetDeletionTimestamp() != nil {
			return nil, NotInstalledError{o.kind + " " + o.name}
		}
	}
	at.mutating.Webhooks, at.leftOutMutating = withoutExemptions(at.mutating.Webhooks)
	at.validating.Webhooks, at.leftOutValidating = withoutExemptions(at.validating.Webhooks)
	var err error
	if at.call, err = callOf(chart); err != nil {
		return nil, fmt.Errorf("finding out how webhooks are called: %w", err)
	}
	return at, nil
}
