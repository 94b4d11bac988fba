// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Terms are the parts of a priority strategy that match a pod's labels.
type Terms struct {
	selectors []labels.Selector
	keys      []string
	text      string
}

// NewTerms compiles a priority strategy, which may be nil.
func NewTerms(s *kruise.UpdatePriorityStrategy) (Terms, error) {
	t := Terms{}
	if s == nil {
		return t, nil
	}
	for i := range s.WeightPriority {
		sel, err := metav1.LabelSelectorAsSelector(&s.WeightPriority[i].MatchSelector)
		if err != nil {
			return Terms{}, fmt.Errorf("reading weightPriority[%d].matchSelector: %w", i, err)
		}
		t.selectors = append(t.selectors, sel)
		t.text += "w" + sel.String() + "\n"
	}
	for _, o := range s.OrderPriority {
		t.keys = append(t.keys, o.OrderedKey)
		t.text += "o" + o.OrderedKey + "\n"
	}
	return t, nil
}

// SetPriority copies the numbers and the keys of a priority strategy, which may be nil, into
// the strategy that policies read.
func SetPriority(s *rollout.Strategy, p *kruise.UpdatePriorityStrategy) {
	if p == nil {
		return
	}
	for _, t := range p.WeightPriority {
		s.Weights = append(s.Weights, int(t.Weight))
	}
	for _, t := range p.OrderPriority {
		s.OrderKeys = append(s.OrderKeys, t.OrderedKey)
	}
}

func (t Terms) isEqual(o Terms) bool { return t.text == o.text }

func (t Terms) matchingSelectors(l map[string]string) []int {
	var out []int
	for i, s := range t.selectors {
		if s.Matches(labels.Set(l)) {
			out = append(out, i)
		}
	}
	return out
}

// orderPriority finds the first key the pod has and the number its value ends with
// (A-14): -1 without a key, 0 without a number.
func (t Terms) orderPriority(l map[string]string) (level, value int) {
	level = slices.IndexFunc(t.keys, func(k string) bool { _, ok := l[k]; return ok })
	if level < 0 {
		return -1, 0
	}
	v := l[t.keys[level]]
	i := len(v)
	for i > 0 && v[i-1] >= '0' && v[i-1] <= '9' {
		i--
	}
	n, err := strconv.ParseInt(v[i:], 10, 64)
	if err != nil {
		return level, 0
	}
	return level, int(n)
}
