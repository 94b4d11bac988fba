// SPDX-License-Identifier: Apache-2.0

// Package proptest has the property tests of the packages that import it draw the
// same each time, so that a test that fails fails for the change that was made.
// go test -rapid.seed=0 draws others, and -rapid.checks=N more of them; make simulate does so for the lives of workloads.
//
// The race detector makes a test some times slower, and a few runs of what is tested show a race as well as a hundred. So with it
// an eighth is drawn of what go test draws without it.
package proptest

import (
	"flag"
	"fmt"
	"strconv"

	_ "pgregory.net/rapid" // it declares the flags
)

// checks is how many draws a property holds for without the race detector: what
// rapid has of itself.
const checks = 100

func init() { //nolint:gochecknoinits // rapid reads its flags when the first test begins
	set("rapid.seed", "20261121")
	set("rapid.checks", strconv.Itoa(Often(checks)))
}

func set(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(fmt.Sprintf("draws: rapid has no flag %s any more: %v", name, err))
	}
}

// Often is how often a test does what it is to do n times, at least once.
func Often(n int) int {
	if Race {
		return max(1, n/8)
	}
	return n
}
