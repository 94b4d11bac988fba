// SPDX-License-Identifier: Apache-2.0

package module

import (
	"bytes"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
)

// SourceText returns a part of a module as its author wrote it, in one line. OPA gives all conditions of an
// else the location of the else, so SourceText formats these from the syntax tree.
func SourceText(x ast.Node) string {
	var text []byte
	if at := x.Loc(); at != nil {
		text = at.Text
	}
	if len(text) == 0 || bytes.HasPrefix(text, []byte("else")) {
		var err error
		if text, err = format.Ast(x); err != nil {
			return fmt.Sprint(x)
		}
	}
	return string(bytes.Join(bytes.Fields(text), []byte(" ")))
}
