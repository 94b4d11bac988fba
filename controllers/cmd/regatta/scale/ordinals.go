// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"

	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// addReservedOrdinals adds the ordinals of the pods of --pods to the reserved ones. Whether the pods exist
// does not matter: a reserved ordinal gets none.
func (s *scaleDown) addReservedOrdinals(kind edit.Kind, object *unstructured.Unstructured) (chosenPods, error) {
	value, _, err := unstructured.NestedFieldCopy(object.Object, kind.ReserveOrdinals...)
	if err != nil {
		return chosenPods{}, fmt.Errorf("reading %s: %w", kind.ReserveOrdinals, err)
	}
	reserved, err := readReserved(value, kind.ReserveOrdinals.String())
	if err != nil {
		return chosenPods{}, err
	}
	numbers, chosen, err := s.chooseOrdinals(kind, object, reserved)
	if err != nil {
		return chosenPods{}, err
	}
	list, _ := value.([]any) // nil, or a list, since it was read above
	for _, n := range numbers {
		list = append(list, n)
	}
	if err := unstructured.SetNestedSlice(object.Object, list, kind.ReserveOrdinals...); err != nil {
		return chosenPods{}, fmt.Errorf("writing %s: %w", kind.ReserveOrdinals, err)
	}
	return chosen, nil
}

// chooseOrdinals returns the ordinals of the pods of --pods that are not reserved yet. It refuses all of them
// if one is not a pod of the object.
func (s *scaleDown) chooseOrdinals(
	kind edit.Kind, object *unstructured.Unstructured, reserved []span,
) ([]int64, chosenPods, error) {
	start, _, err := unstructured.NestedInt64(object.Object, "spec", "ordinals", "start")
	if err != nil {
		return nil, chosenPods{}, fmt.Errorf("reading spec.ordinals.start: %w", err)
	}
	replicas, _, err := readReplicas(kind, object)
	if err != nil {
		return nil, chosenPods{}, err
	}
	var chosen chosenPods
	var numbers []int64
	var wrong []string
	set, described := object.GetName(), kind.Describe(object.GetName())
	for _, name := range s.pods {
		n, ok := parseOrdinal(set, name)
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s is not the name of a pod of %s; want %s-ORDINAL", name, described, set))
		case isReserved(n, reserved):
			chosen.addRemark("pod %s does not count: %s has its ordinal already", name, kind.ReserveOrdinals)
		case !isWanted(n, start, replicas, reserved):
			wrong = append(wrong, fmt.Sprintf("pod %s is beyond the ordinals of %s: spec.replicas is %d and the first ordinal is %d",
				name, described, replicas, start))
		default:
			numbers, chosen.counted = append(numbers, n), append(chosen.counted, name)
		}
	}
	if len(wrong) > 0 {
		return nil, chosenPods{}, exit.RefusalErrorf("%s; no pod is deleted", strings.Join(wrong, ", "))
	}
	return numbers, chosen, nil
}

// span is a range of ordinals with both ends included.
type span struct{ from, to int64 }

// isReserved is true if no pod may have an ordinal.
func isReserved(n int64, reserved []span) bool {
	return slices.ContainsFunc(reserved, func(s span) bool { return s.from <= n && n <= s.to })
}

// isWanted is true if a set of so many replicas has a pod of an ordinal. It does not go through the ordinals, as
// the controller does: the object may ask for any number of replicas.
func isWanted(n, start, replicas int64, reserved []span) bool {
	return n >= start && !isReserved(n, reserved) && countOrdinals(start, n, reserved) < replicas
}

// countOrdinals is how many ordinals from start to before end are not reserved.
func countOrdinals(start, end int64, reserved []span) int64 {
	count, next := int64(0), start
	for _, s := range slices.SortedFunc(slices.Values(reserved), func(a, b span) int { return cmp.Compare(a.from, b.from) }) {
		if s.from >= end {
			break
		}
		count += max(s.from-next, 0)
		next = max(next, s.to+1)
	}
	return count + max(end-next, 0)
}

// parseOrdinal returns the ordinal in the name of a pod of a set.
func parseOrdinal(set, pod string) (int64, bool) {
	text, ok := strings.CutPrefix(pod, set+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return n, err == nil && strconv.FormatInt(n, 10) == text && n >= 0
}

// readReserved reads a list of ordinals and ranges of them. It ignores a text that is neither, as the
// controller does.
func readReserved(value any, at string) ([]span, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is %s; it must be a list", at, edit.DescribeType(value))
	}
	var out []span
	for i, entry := range list {
		switch e := entry.(type) {
		case string:
			if s, ok := parseSpan(e); ok {
				out = append(out, s)
			}
		case int64:
			out = append(out, span{e, e})
		default:
			return nil, fmt.Errorf("%s[%d] is %s; it must be a number or a range such as 5-9", at, i, edit.DescribeType(entry))
		}
	}
	return out, nil
}

// parseSpan reads an ordinal or a range such as 5-9.
func parseSpan(text string) (span, bool) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	first, errFirst := strconv.ParseInt(from, 10, 32)
	last, errLast := strconv.ParseInt(to, 10, 32)
	return span{first, last}, errFirst == nil && errLast == nil && first <= last
}
