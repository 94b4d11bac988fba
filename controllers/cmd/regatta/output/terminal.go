// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether out is a terminal, so that a user sees at once what is written to it.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
