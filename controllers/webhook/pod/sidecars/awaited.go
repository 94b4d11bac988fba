// SPDX-License-Identifier: Apache-2.0

package sidecars

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
)

// mostRead is how many SidecarSets are read one by one.
const mostRead = 10

// refreshAwaited replaces the SidecarSets of a list that are older in the cache than awaited by those of the API server: a pod may be
// created right after its SidecarSet.
func (s *step) refreshAwaited(ctx context.Context, list *kruise.SidecarSetList) error {
	token := podscope.TokenOf(ctx)
	if token == "" || s.Awaited == nil {
		return nil
	}
	claims, err := s.Awaited(ctx, token)
	if err != nil {
		return err
	}
	behind := s.staleNames(claims, list.Items)
	// Too many claims are merged into one for all pods, which names no SidecarSet: then any SidecarSet may be outdated.
	unnamed := slices.ContainsFunc(claims, podscope.PendingSelector.IsUnnamed)
	if len(behind) == 0 && !unnamed {
		return nil
	}
	if len(behind) > mostRead || unnamed {
		live := &kruise.SidecarSetList{}
		if err := s.Live.List(ctx, live); err != nil {
			return fmt.Errorf("listing SidecarSets that were written a moment ago: %w", err)
		}
		list.Items = live.Items
		return nil
	}
	items := slices.Clone(list.Items)
	for _, name := range behind {
		set := &kruise.SidecarSet{}
		err := s.Live.Get(ctx, client.ObjectKey{Name: name}, set)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading SidecarSet %s, which was written a moment ago: %w", name, err)
		}
		items = slices.DeleteFunc(items, func(o kruise.SidecarSet) bool { return o.Name == name })
		if !apierrors.IsNotFound(err) {
			items = append(items, *set)
		}
	}
	list.Items = items
	return nil
}

// staleNames returns the names of the SidecarSets that are older than their newest claims.
func (s *step) staleNames(claims []podscope.PendingSelector, items []kruise.SidecarSet) []string {
	newest := map[string]podscope.PendingSelector{}
	for _, c := range claims {
		if c.Kind == "" && c.Set != "" {
			newest[c.Set] = c // claims are in order
		}
	}
	for i := range items {
		set := &items[i]
		if c, awaited := newest[set.Name]; awaited && set.DeletionTimestamp == nil && podscope.DescribePods(set).Key() == c.Reach.Key() {
			delete(newest, set.Name)
		}
	}
	var out []string
	for name := range newest {
		out = append(out, name)
	}
	return out
}
