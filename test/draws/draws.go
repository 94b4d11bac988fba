// Package draws has the property tests of the packages that import it draw the
// same each time, so that a test that fails fails for the change that was made.
// go test -rapid.seed=0 draws others, and -rapid.checks=N more of them.
package draws

import (
	"flag"

	_ "pgregory.net/rapid" // it declares the flag
)

func init() {
	if err := flag.Set("rapid.seed", "20261121"); err != nil {
		panic("draws: rapid has no flag rapid.seed any more: " + err.Error())
	}
}
