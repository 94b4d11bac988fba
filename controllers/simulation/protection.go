// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/accounting"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	webhookpod "github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/steps"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/engine/decision"
)

// unhurried is how long an answer may take: a slow machine must not change the
// output.
const unhurried = time.Hour

// setupProtection puts the webhooks of pods before the API server, and runs the controller of
// budgets. It returns the check of budgets for the controller of the workload; nil if the
// gates disable it.
func (s *Simulation) setupProtection(ctx context.Context, f ClusterState, clock func() time.Time) (rollout.Budget, error) {
	on := s.gates.Enabled
	gates := webhookconfig.GatesOf(on)
	s.counters = &counters{
		agenda: &budgetQueue{now: clock, due: map[reconcile.Request]time.Time{}},
		others: slices.ContainsFunc(f.Others, func(o client.Object) bool { _, pod := o.(*corev1.Pod); return pod }),
	}
	c := s.counters.budgetClient(s.cluster)
	finder := podunavailablebudget.NewFinder(c, scale.NewFinder(c, unscaled{}))
	book := accounting.New(c, s.cluster.server, accounting.NewEngineDecider(s.engine), accounting.WithClock(clock), accounting.WithResizes(on(features.InPlacePodVerticalScaling)))
	recent, answers := protection.NewRecent(clock), explain.NewStore()
	enabled, err := steps.ListEnabled(on, steps.Needs{
		Finder: finder, Ledger: book, Recent: recent, Reporter: protection.NewReporter(s.engine, answers),
		Cached: s.cluster.server, Live: s.cluster.server, Engine: s.engine, Namespace: home,
	})
	if err != nil {
		return nil, err
	}
	mutator, validator := webhookpod.New(s.cluster.server, enabled, unhurried)
	if on(features.PodWebhook) {
		config := webhookconfig.Config{
			Namespace: home, Pods: true, Created: enabled.CreatedMatches(), Stored: enabled.StoredMatches(), PodFailurePolicy: registrationv1.Fail, TimeoutSeconds: 3,
		}
		var budgeted []string
		if len(f.Budgets) > 0 {
			budgeted = []string{f.Workload.GetNamespace()}
		}
		sent, err := webhookconfig.NewRules(s.engine, gates).RenderWebhooks(ctx, config, budgeted)
		if err != nil {
			return nil, fmt.Errorf("asking what is protected: %w", err)
		}
		a := &admissionChain{namespace: f.Workload.GetNamespace(), answers: answers, handlers: map[string]admission.Handler{webhookconfig.MutatePodPath: mutator, webhookconfig.ValidatePodPath: validator}}
		if a.change, a.check, err = compileWebhooks(s.namespace, sent.Mutating, sent.Validating); err != nil {
			return nil, err
		}
		s.cluster.admits = a
	}
	s.cluster.refused = func(r Refusal) { s.refusals = append(s.refusals, r) }
	seen := recent.Watch()
	s.cluster.watchers = append(s.cluster.watchers, watcher{handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		seen.OnDelete(e.Object)
	}}, nil})
	if !gates.BudgetDelete && !gates.BudgetUpdate {
		return nil, nil
	}
	s.counters.reconciler = podunavailablebudget.New(reconcile.Deps{Client: c, Live: s.cluster.server, Events: &record.FakeRecorder{}, Now: clock}, finder,
		podunavailablebudget.WithParallelWrites(1))
	if len(f.Budgets) > 0 {
		s.cluster.watchers = append(s.cluster.watchers, watcher{s.counters.reconciler.PodEvents(), s.counters.agenda})
	}
	for _, b := range f.Budgets {
		s.counters.agenda.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	}
	if !gates.BudgetUpdate {
		return nil, nil
	}
	ask := book.NewUpdateCheck(accounting.ManagerUser(home), recent, unhurried)
	return func(ctx context.Context, pod *corev1.Pod) (*decision.Hold, error) {
		hold, err := ask(ctx, pod)
		if hold != nil {
			s.cluster.refused(*refusalOf(writeUpdate, pod, hold.Rule, hold.Reason, hold.Message, hold.Until))
		}
		return hold, err
	}, nil
}

// labelsOf are the labels of the namespace, which always include its name.
func labelsOf(f ClusterState) labels.Set {
	out := labels.Set{}
	if f.Namespace != nil {
		out = labels.Merge(out, f.Namespace.Labels)
	}
	out[corev1.LabelMetadataName] = f.Workload.GetNamespace()
	return out
}

// refusalOf describes a refusal. It names the budget if the rule is one of the built-in rules
// about budgets.
func refusalOf(write string, pod *corev1.Pod, rule, reason, message, until string) *Refusal {
	r := &Refusal{Write: write, Pod: pod.Name, Rule: rule, Reason: reason, Message: message, Until: until}
	if strings.HasPrefix(rule, "protection.budget.") || rule == "clamp" || rule == "ledger" {
		r.Budget = availability.BudgetName(pod)
	}
	return r
}

// onlyRefused reports whether an error only joins refusals of writes.
func onlyRefused(err error) bool {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			if !onlyRefused(e) {
				return false
			}
		}
		return true
	}
	return protection.RefusedBy(err) != nil
}

// How long after a refusal the same write is tried again. Like the controller, it
// tries soon and then later and later, up to the manager's longest delay.
const (
	askAgain    = time.Second
	longestWait = 1000 * time.Second
)

// retryTime returns when to try again after a round with refusals. Nothing is known
// about refusals except the times that they name.
func (s *Simulation) retryTime(refused []Refusal) time.Time {
	at := s.now.Add(min(askAgain<<min(s.denials, 10), longestWait))
	s.denials++
	var first time.Time
	named := 0
	for _, r := range refused {
		until, err := time.Parse(time.RFC3339, r.Until)
		if err != nil || !until.After(s.now) {
			continue
		}
		named++
		if first.IsZero() || until.Before(first) {
			first = until
		}
	}
	if named == len(refused) || named > 0 && first.Before(at) {
		return first
	}
	return at
}
