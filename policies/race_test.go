//go:build race

package policies_test

// often is less than without the race detector, which takes ten times as long.
const often = 50

// swaps is less too.
const swaps = 10
