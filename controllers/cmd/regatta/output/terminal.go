// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal says whether somebody sees what is written to out at once.
func Terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
