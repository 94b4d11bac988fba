// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// meter counts the parts of values. A shared part counts once for every path to it, since printing or
// comparing a value visits every path. It stops at its limits.
type meter struct {
	maxNodes, maxBytes int
	nodes, bytes       int
	cancel             topdown.Cancel // nil if OPA passes none to a built-in
	err                error
}

// glance is how many nodes are counted between two checks for cancellation. It is a power of two.
const glance = 1 << 12

// measureTerms counts values. Its error names the limit that they exceed.
func (m *meter) measureTerms(values ...*ast.Term) error {
	for _, v := range values {
		if !m.countValue(v.Value) {
			return m.err
		}
	}
	return nil
}

// countValue is false if the walk ends before all parts are counted.
func (m *meter) countValue(v ast.Value) bool {
	if m.nodes++; m.nodes > m.maxNodes {
		m.err = fmt.Errorf("its operands have more than %d values in them, each counted once for every way to it, which is the limit", m.maxNodes)
		return false
	}
	if m.nodes%glance == 0 && m.cancel != nil && m.cancel.Cancelled() {
		m.err = errCancelled
		return false
	}
	switch v := v.(type) {
	case ast.String:
		return m.addTextBytes(len(v))
	case ast.Number:
		if m.err = CheckNumber(v); m.err != nil {
			return false
		}
		return m.addTextBytes(len(v))
	case *ast.Array:
		for i := range v.Len() {
			if !m.countValue(v.Elem(i).Value) {
				return false
			}
		}
	case ast.Set:
		for _, t := range v.Slice() {
			if !m.countValue(t.Value) {
				return false
			}
		}
	case ast.Object:
		// A stopped walk still visits the other keys of the enclosing objects, but goes no deeper.
		return !v.Until(func(k, t *ast.Term) bool { return !m.countValue(k.Value) || !m.countValue(t.Value) })
	}
	return true
}

func (m *meter) addTextBytes(bytes int) bool {
	if m.bytes += bytes; m.bytes > m.maxBytes {
		m.err = fmt.Errorf("its operands have more than %d bytes of text, which is the limit", m.maxBytes)
		return false
	}
	return true
}

// CheckNumber returns an error for a number that makes calculations and comparisons slow: one with
// more than MaxDigits digits, or with a larger exponent.
func CheckNumber(n ast.Number) error {
	if len(n) > MaxDigits {
		return fmt.Errorf("a number has %d digits, and may have %d", len(n), MaxDigits)
	}
	if at := strings.IndexAny(string(n), "eE"); at >= 0 {
		if exp, err := strconv.Atoi(string(n[at+1:])); err != nil || exp > MaxDigits || exp < -MaxDigits {
			return fmt.Errorf("a number has the exponent %s, and may have %d", n[at+1:], MaxDigits)
		}
	}
	return nil
}
