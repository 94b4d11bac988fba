// SPDX-License-Identifier: Apache-2.0

package implication

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// maxText is how many bytes of a condition are shown.
const maxText = 123

func textOf(x ast.Node) string { return decision.TruncateText(module.SourceText(x), maxText) }
