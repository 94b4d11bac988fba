// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
)

// selectors caches parsed selectors: the selector of a budget never changes.
type selectors struct {
	mu   sync.Mutex
	kept map[types.UID]labels.Selector
}

// most is how many selectors are kept. Not every replica is notified of deleted budgets, so all
// selectors are forgotten at that number.
const most = 20_000

func newSelectors() *selectors { return &selectors{kept: map[types.UID]labels.Selector{}} }

func (s *selectors) selectorOf(b *policy.PodUnavailableBudget) (labels.Selector, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got, ok := s.kept[b.UID]; ok {
		return got, nil
	}
	got, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	if got.Empty() { // an empty selector, which the schema refuses, would select all pods
		got = labels.Nothing()
	}
	if len(s.kept) >= most {
		clear(s.kept)
	}
	s.kept[b.UID] = got
	return got, nil
}
