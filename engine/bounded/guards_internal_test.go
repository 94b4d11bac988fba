// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

func TestEachGuardIsOfAFunctionThatOPAHas(t *testing.T) {
	for name := range guards {
		if topdown.GetBuiltin(name) == nil || ast.BuiltinMap[name] == nil {
			t.Errorf("OPA has no function %s", name)
		}
	}
}
