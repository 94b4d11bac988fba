// SPDX-License-Identifier: Apache-2.0

// Package sidecars adds the containers of SidecarSets to new pods (SS-02). Policies decide which SidecarSets, at which
// revision and in which order.
package sidecars

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/injection"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/facts"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/injection"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Options are what the step needs.
type Options struct {
	// Cached reads SidecarSets, their revisions and namespaces from the cache, Live from the API server.
	Cached, Live client.Reader
	Engine       *engine.Engine
	// Namespace is the namespace of the manager, which has the revisions.
	Namespace string
	// SortByName sorts containers by name (gate EnableSortSidecarContainerByName).
	SortByName bool
	// Now is time.Now if unset, and Draw a random number.
	Now  func() time.Time
	Draw func() float64
	// Awaited returns the SidecarSets for which the API server sends pods although the cache may not have them yet, by the token
	// that a pod was sent with; nil if none are awaited.
	Awaited func(ctx context.Context, token string) ([]podscope.PendingSelector, error)
	// Told, if set, receives each decision.
	Told func(points.SidecarsOutput)
}

// New makes the step.
func New(options Options) pod.MutatingStep {
	s := newStep(options)
	return pod.MutatingStep{
		Place: pod.SidecarSet, Name: "adding the containers of SidecarSets",
		Match: match.Created{Name: "sidecars", Namespaces: match.WithSidecars}, Mutate: s.mutatePod,
	}
}

type step struct {
	Options
	selectors *matching.Memory
}

func newStep(options Options) *step {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Draw == nil {
		options.Draw = rand.Float64
	}
	return &step{Options: options, selectors: matching.NewMemory()}
}

// decideSidecars decides which containers a pod gets: none if neither a SidecarSet nor a rule concerns it.
func (s *step) decideSidecars(ctx context.Context, c *pod.Creation) (*gathered, points.SidecarsOutput, error) {
	g, err := s.gatherSets(ctx, c)
	if err != nil {
		return nil, points.SidecarsOutput{}, err
	}
	point, subject := points.SidecarsPoint(), subjectOf(c)
	if len(g.sets) == 0 && !s.Engine.ActiveSnapshot().IsPointExtended(point.Name, subject) {
		return g, points.SidecarsOutput{}, nil
	}
	out, _ := engine.Decide(ctx, s.Engine, point, subject, g.decisionInput())
	more, err := g.addWanted(out.Wanted, c)
	if err != nil {
		return nil, out, err
	}
	if more { // rules want more SidecarSets, so the point is decided again with these
		out, _ = engine.Decide(ctx, s.Engine, point, subject, g.decisionInput())
	}
	if s.Told != nil {
		s.Told(out)
	}
	return g, out, nil
}

func (s *step) mutatePod(ctx context.Context, c *pod.Creation) (bool, error) {
	g, out, err := s.decideSidecars(ctx, c)
	if err != nil {
		return false, err
	}
	if err := refusalError(out.Refuse); err != nil {
		return false, err
	}
	sets, err := g.chosenSets(out.Inject)
	if err != nil {
		return false, err
	}
	if err := s.computeResources(ctx, c, subjectOf(c), sets); err != nil {
		return false, err
	}
	if err := injection.ApplySets(c.Pod, sets, injection.Options{Now: s.Now(), SortByName: s.SortByName}); err != nil {
		return false, err
	}
	return len(sets) > 0, nil
}

func subjectOf(c *pod.Creation) decision.Subject {
	return decision.Subject{Kind: "Pod", Namespace: c.Namespace, Name: facts.Name(c)}
}

// refusalError is the error that refuses a pod.
func refusalError(reasons []decision.Hold) error {
	if len(reasons) == 0 {
		return nil
	}
	messages := make([]string, len(reasons))
	for i, r := range reasons {
		messages[i] = fmt.Sprintf("%s (%s)", r.Message, r.Rule)
	}
	return errors.New(strings.Join(messages, "; "))
}

// failurePolicy says whether pods are refused while no policy decides.
func failurePolicy(set *kruise.SidecarSet) string {
	if set.Annotations[kruise.SidecarSetInjectionFailurePolicyKey] == points.FailOpen {
		return points.FailOpen
	}
	return points.FailClosed
}
