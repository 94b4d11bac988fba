// SPDX-License-Identifier: Apache-2.0

// Package ordinals computes the ordinals for which a StatefulSet wants pods (ASTS-01).
package ordinals

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Range is the ordinals that are wanted: those from Start to before End that are not reserved.
type Range struct {
	// Start is the first ordinal, and End is the last one plus 1.
	Start, End int
	reserved   []span
}

// span is a range of ordinals with both ends included.
type span struct{ from, to int }

// NewRange returns the ordinals of a set: from start on, as many as there are replicas, without the
// reserved ones. Entries that cannot be read are ignored: admission refuses them.
func NewRange(start, replicas int, reserve []intstr.IntOrString) Range {
	r := Range{Start: start, End: start, reserved: parseReserved(reserve)}
	for left := replicas; left > 0; r.End++ {
		if s, ok := r.findReservation(r.End); ok {
			r.End = s.to // the loop continues after the reserved span
			continue
		}
		left--
	}
	return r
}

func parseReserved(entries []intstr.IntOrString) (out []span) {
	for _, e := range entries {
		if e.Type == intstr.Int {
			out = append(out, span{e.IntValue(), e.IntValue()})
			continue
		}
		from, to, isRange := strings.Cut(e.StrVal, "-")
		first, err := strconv.ParseInt(from, 10, 32)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseInt(to, 10, 32)
		}
		if err == nil && first <= last {
			out = append(out, span{int(first), int(last)})
		}
	}
	return out
}

func (r Range) findReservation(n int) (span, bool) {
	for _, s := range r.reserved {
		if s.from <= n && n <= s.to {
			return s, true
		}
	}
	return span{}, false
}

// HasOrdinal reports whether a pod of an ordinal is wanted.
func (r Range) HasOrdinal(n int) bool {
	_, reserved := r.findReservation(n)
	return r.IsInBounds(n) && !reserved
}

// AllOrdinals returns the ordinals that are wanted, the lowest first.
func (r Range) AllOrdinals() []int {
	var out []int
	for n := r.Start; n < r.End; n++ {
		if r.HasOrdinal(n) {
			out = append(out, n)
		}
	}
	return out
}

// IsInBounds reports whether an ordinal is between the first and the last wanted one, reserved or not.
func (r Range) IsInBounds(n int) bool { return n >= r.Start && n < r.End }
