// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// canaryKindsMessage says which kinds a canary would protect that are not protected that way now; it
// is empty if there are none. Which kinds are protected is the same in all namespaces, because a
// webhook configuration applies to the whole cluster.
func (p *Publisher) canaryKindsMessage(ctx context.Context, key Key, canary *bundle.Bundle) (string, error) {
	promoted, err := p.Host.Engine().CompileBundles(ctx, append(p.Host.PeerBundles(key), canary))
	if err != nil {
		return "", fmt.Errorf("asking bundle %s which kinds it protects: %w", key, err)
	}
	now := p.protectedKinds(ctx, p.Host.Engine().ActiveSnapshot())
	var names []string
	for _, k := range p.protectedKinds(ctx, promoted) {
		if !slices.Contains(now, k) {
			names = append(names, strings.TrimSuffix(k.Resource+"."+k.Group, "."))
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	slices.Sort(names)
	return " " + fmt.Sprintf(policy.PolicyBundleCanaryKindsMessage, strings.Join(names, ", ")), nil
}

// protectedKinds returns the kinds that the policies of the whole cluster protect if all features are
// on; none if the policies have no answer.
func (p *Publisher) protectedKinds(ctx context.Context, s *engine.Snapshot) []protection.ProtectedKind {
	in := protection.GuardsInput{Gates: protection.Gates{Deletion: true, CRDCascading: true, BudgetDelete: true, BudgetUpdate: true}}
	out, _ := engine.DecideOn(ctx, p.Host.Engine(), s, protection.GuardsPoint().EraseTypes(), decision.Subject{}, in)
	return out.(protection.GuardsOutput).Kinds
}
