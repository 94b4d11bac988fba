// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/expression"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/controllers/workload/coalesce"
	"github.com/regatta-sh/regatta/engine"
)

// A claim is kept until its object has existed as claimed for the time settled, since caches of other replicas may be behind.
// Without such an object it is kept for the time lost: the API server has given up the request of the claim by then.
const (
	settled = 30 * time.Second
	lost    = 2 * time.Minute
)

// Bounds on claims. Any client that reaches the webhook can post reviews of objects that are never written, unless the manager
// verifies the certificate of the API server, and each makes a claim. Claims beyond the bounds are replaced by one claim for all
// pods: more pods are sent than before, never fewer.
const (
	mostClaims   = 100
	claimedBytes = 64 << 10
)

// Bounds on how often claims are written, since the API server compiles the configuration again each time. Further requests wait, and
// their claims are written together. An object is refused if its request ends before that.
const (
	claimsPerSecond = 10
	claimsAtOnce    = 50
	// claimPatience is how long one write may take.
	claimPatience = 10 * time.Second
	// mostClaimers is how many requests wait at once: as many as are written in five seconds. Requests that have ended count until
	// their turn.
	mostClaimers = 50 * mostClaims
)

// seenWithin is how long the API server may take to show a write. Its webhooks follow a separate watch, which may be behind the
// manager's watch by the time apart.
const (
	seenWithin = time.Second
	apart      = 50 * time.Millisecond
)

// AwaitSidecarSet ensures that the API server sends the pods that a SidecarSet may select before the SidecarSet itself is written, and that the
// replica that receives such a pod has the SidecarSet. Any replica may call it: its write makes the API server send more pods than before,
// never fewer, and the leader keeps the claim until it has seen the SidecarSet.
func (w *Writer) AwaitSidecarSet(ctx context.Context, set *kruise.SidecarSet) error {
	claims := []podscope.PendingSelector{{Set: set.Name, Reach: podscope.DescribePods(set), At: w.Now()}}
	for _, r := range w.Rules.addedPodScopes(w.Rules.engine.ActiveSnapshot()) { // the SidecarSet may be the first one
		claims = append(claims, podscope.PendingSelector{Reach: r, At: w.Now()})
	}
	if err := w.submitClaims(ctx, claims); err != nil {
		return fmt.Errorf("having the API server send the pods of SidecarSet %s: %w", set.Name, err)
	}
	return nil
}

// AwaitRules ensures that the API server sends the pods that rules may add SidecarSets to, before the rules are active.
func (w *Writer) AwaitRules(ctx context.Context, next *engine.Snapshot) error {
	now := w.Rules.addedPodScopes(w.Rules.engine.ActiveSnapshot())
	var claims []podscope.PendingSelector
	for _, r := range w.Rules.addedPodScopes(next) {
		if !slices.ContainsFunc(now, func(o podscope.Selector) bool { return o.Key() == r.Key() }) {
			claims = append(claims, podscope.PendingSelector{Reach: r, At: w.Now()})
		}
	}
	if err := w.submitClaims(ctx, claims); err != nil {
		return fmt.Errorf("having the API server send the pods that rules may add SidecarSets to: %w", err)
	}
	return nil
}

// AwaitObject ensures that the API server sends the pods of the namespace of a WorkloadSpread or PersistentPodState before the
// object itself is written, as AwaitSidecarSet does for SidecarSets: the object may be the first in its namespace.
func (w *Writer) AwaitObject(ctx context.Context, o client.Object) error {
	kind := podscope.KindOf(o)
	if kind == "" || !w.Config.GuardsNamespace(o.GetNamespace(), nil) {
		return nil
	}
	claim := podscope.PendingSelector{Kind: kind, Namespace: o.GetNamespace(), Set: o.GetName(), UID: o.GetUID(), Reach: podscope.Selector{Namespaces: []string{o.GetNamespace()}}, At: w.Now()}
	if err := w.submitClaims(ctx, []podscope.PendingSelector{claim}); err != nil {
		return fmt.Errorf("having the API server send the pods of the namespace of %s %s: %w", kind, o.GetName(), err)
	}
	return nil
}

// concernsSteps reports whether a step of the webhook reads the objects that a claim is for.
func (w *Writer) concernsSteps(c podscope.PendingSelector) bool {
	at := match.WithSidecars
	if c.Kind != "" {
		at = namespacesWith(c.Kind)
	}
	return w.Config.Pods && !c.Reach.None && slices.ContainsFunc(w.Config.Created, func(m match.Created) bool { return m.Namespaces == at })
}

// submitClaims writes claims, and returns when the API server shows them. It writes nothing if the webhook is not installed, or no step
// reads the objects.
func (w *Writer) submitClaims(ctx context.Context, claims []podscope.PendingSelector) error {
	claims = slices.DeleteFunc(claims, func(c podscope.PendingSelector) bool { return !w.concernsSteps(c) })
	if len(claims) == 0 {
		return nil
	}
	if w.queued.Add(1) > mostClaimers {
		w.queued.Add(-1)
		return fmt.Errorf("%d other objects that pods are sent for wait to be written; try again", mostClaimers)
	}
	c := &pendingClaim{ctx: ctx, claims: claims, done: make(chan error, 1)}
	w.claimQueue().EnqueueCaller(struct{}{}, c)
	select {
	case err := <-c.done:
		if errors.As(err, &NotInstalledError{}) {
			return nil
		}
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return waitingError(ctx.Err())
	}
	w.awaitClaimsShown(ctx, claims)
	return nil
}

func waitingError(err error) error {
	return fmt.Errorf("waiting while other objects are written that pods are sent for; try again: %w", err)
}

// pendingClaim is a request that waits for its claims to be written.
type pendingClaim struct {
	ctx    context.Context //nolint:containedctx // of the request, which may be over before its turn comes
	claims []podscope.PendingSelector
	done   chan error
}

// claimQueue is the queue of requests with claims.
func (w *Writer) claimQueue() *coalesce.Queue[struct{}, *pendingClaim] {
	w.claiming.Lock()
	defer w.claiming.Unlock()
	if w.writes == nil {
		w.writes = rate.NewLimiter(claimsPerSecond, claimsAtOnce)
	}
	if w.queue == nil {
		w.queue = &coalesce.Queue[struct{}, *pendingClaim]{Most: mostClaims, Patience: claimPatience, Answer: w.writeClaims, Fail: answerClaimers}
	}
	return w.queue
}

// writeClaims writes the claims of up to mostClaims waiting requests at once. So a request waits for only one write for each hundred requests
// before it, however many objects are created.
func (w *Writer) writeClaims(ctx context.Context, _ struct{}, batch []*pendingClaim) {
	defer w.queued.Add(-int32(len(batch))) //nolint:gosec // it is at most mostClaims
	isOver := func(c *pendingClaim) bool { return c.ctx.Err() != nil }
	if !slices.ContainsFunc(batch, func(c *pendingClaim) bool { return !isOver(c) }) {
		return // requests that have ended do not use up the rate limit
	}
	if err := w.writes.Wait(ctx); err != nil {
		answerClaimers(batch, waitingError(err))
		return
	}
	batch = slices.DeleteFunc(slices.Clone(batch), isOver)
	var claims []podscope.PendingSelector
	for _, c := range batch {
		for _, one := range c.claims { // the claim for pods of rules is in all requests
			if !slices.ContainsFunc(claims, func(o podscope.PendingSelector) bool { return o.ContentKey() == one.ContentKey() }) {
				claims = append(claims, one)
			}
		}
	}
	if len(claims) == 0 {
		return
	}
	backOff := wait.Backoff{Steps: 20, Duration: 5 * time.Millisecond, Factor: 1.2, Jitter: 0.5}
	answerClaimers(batch, retry.RetryOnConflict(backOff, func() error { return w.addClaims(ctx, claims) }))
}

// answerClaimers answers requests that have no answer yet.
func answerClaimers(batch []*pendingClaim, err error) {
	for _, c := range batch {
		select {
		case c.done <- err:
		default:
		}
	}
}

// addClaims adds claims to the current configuration.
func (w *Writer) addClaims(ctx context.Context, claims []podscope.PendingSelector) error {
	at, err := w.readConfigurations(ctx)
	if err != nil {
		return err
	}
	before, err := podscope.ReadClaims(at.mutating)
	if err != nil {
		ctrl.Log.Error(err, "The claims of a configuration are not understood, and left out")
	}
	var more []podscope.Selector
	for _, c := range claims {
		if !slices.ContainsFunc(before, func(o podscope.PendingSelector) bool { return o.Reach.Key() == c.Reach.Key() }) {
			more = append(more, c.Reach)
		}
	}
	claims = boundClaims(before, claims)
	f := renderFacts{Config: w.Config, call: at.call, awaited: podscope.ClaimsToken(claims)}
	if f.configs, err = f.pathConfigs(); err != nil {
		return err
	}
	if slices.ContainsFunc(claims, func(c podscope.PendingSelector) bool { return c.Reach.MatchesAllPods() }) {
		more = append(more, podscope.Selector{})
	}
	condition, _ := podscope.CELCondition(more)
	// Namespaces that another client leaves out stay so: only the leader puts them back.
	return w.applyMutating(ctx, at.mutating, withExemptions(f.widenedWebhooks(at.mutating.Webhooks, condition), at.leftOutMutating), claims)
}

// boundClaims returns the claims that are kept when some are added to those before: the latest for each object and each
// description of pods, or one for all pods if they are too many or too long.
func boundClaims(before, added []podscope.PendingSelector) []podscope.PendingSelector {
	kept := slices.DeleteFunc(slices.Clone(before), func(o podscope.PendingSelector) bool {
		return slices.ContainsFunc(added, func(c podscope.PendingSelector) bool { return c.ContentKey() == o.ContentKey() })
	})
	kept = append(kept, added...)
	if len(kept) <= mostClaims && len(podscope.EncodeClaims(kept)) <= claimedBytes {
		return kept
	}
	return []podscope.PendingSelector{{At: added[0].At}}
}

// widenedWebhooks returns entries that send all pods that the given entries send, and the pods of a condition.
func (f renderFacts) widenedWebhooks(now []admissionv1.MutatingWebhook, condition string) []admissionv1.MutatingWebhook {
	rest := f.selectAllNamespaces()
	var all, some []admissionv1.MutatingWebhook
	for _, w := range now {
		w.ClientConfig = f.configs[MutatePodPath]
		if len(w.MatchConditions) > 0 {
			some = append(some, w)
			continue
		}
		if equality.Semantic.DeepEqual(w.NamespaceSelector, f.selectAllNamespaces()) {
			return []admissionv1.MutatingWebhook{w}
		}
		all, rest = append(all, w), f.selectOtherNamespaces(w.NamespaceSelector)
	}
	switch {
	case condition == "":
		return append(all, some...)
	case condition == "true":
		return []admissionv1.MutatingWebhook{f.newMutatingWebhook("mpod.kb.io", f.selectAllNamespaces())}
	case len(some) == 0:
		some = []admissionv1.MutatingWebhook{f.newMutatingWebhook(someName, rest)}
	}
	w := some[0]
	var before []string
	for _, c := range w.MatchConditions {
		before = append(before, c.Expression)
	}
	if len(before) > 0 {
		condition = expression.AnyOf(expression.AllOf(before...), condition)
	}
	if len(some) > 1 || len(condition) > widestEntry {
		return []admissionv1.MutatingWebhook{f.newMutatingWebhook("mpod.kb.io", f.selectAllNamespaces())}
	}
	w.Name, w.MatchConditions = someName, stepConditions(condition)
	return append(all, w)
}

// selectOtherNamespaces selects the namespaces that a selector of names does not select.
func (f renderFacts) selectOtherNamespaces(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if selector != nil {
		for _, r := range selector.MatchExpressions {
			if r.Key == nameKey && r.Operator == metav1.LabelSelectorOpIn {
				return f.selectAllNamespaces(metav1.LabelSelectorRequirement{Key: nameKey, Operator: metav1.LabelSelectorOpNotIn, Values: r.Values})
			}
		}
	}
	return f.selectAllNamespaces()
}

// awaitClaimsShown waits until the API server shows claims to clients that watch the configuration, as its own webhooks
// do.
func (w *Writer) awaitClaimsShown(ctx context.Context, claims []podscope.PendingSelector) {
	w.claiming.Lock()
	watched := w.watched
	w.claiming.Unlock()
	if watched == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	m := &admissionv1.MutatingWebhookConfiguration{}
	if err := wait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := watched.Get(ctx, client.ObjectKey{Name: ConfigurationName}, m); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		now, err := podscope.ReadClaims(m)
		return slices.ContainsFunc(now, func(c podscope.PendingSelector) bool { // another replica may have replaced the claim
			return c.Reach.MatchesAllPods() || c.ContentKey() == claims[0].ContentKey()
		}), err
	}); err != nil {
		ctrl.Log.Info("The API server does not show yet that it sends the pods of an object", "object", claims[0].ObjectKey(), "reason", err.Error())
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(apart):
	}
}

// setWatchedReader makes AwaitSidecarSet and the like read from a watch of the configurations. Webhooks may be
// calling them already.
func (w *Writer) setWatchedReader(configurations client.Reader) {
	w.claiming.Lock()
	defer w.claiming.Unlock()
	w.watched = configurations
}

// outstandingClaims returns the claims of a configuration that still count. Only the leader drops claims, by its own
// clock.
func (w *Writer) outstandingClaims(of *admissionv1.MutatingWebhookConfiguration, objects map[string]podscope.Selector) []podscope.PendingSelector {
	claims, err := podscope.ReadClaims(of)
	if err != nil {
		ctrl.Log.Error(err, "The claims of a configuration are not understood, and left out")
	}
	known := map[string]time.Time{}
	var out []podscope.PendingSelector
	for _, c := range claims {
		since, was := w.claimed[c.ID()]
		if !was {
			since = w.Now()
		}
		known[c.ID()] = since
		age := w.Now().Sub(since)
		if r, there := objects[c.ObjectKey()]; age < settled || age < lost && (!there || r.Key() != c.Reach.Key()) {
			out = append(out, c)
		}
	}
	w.claimed = known
	return out
}
