//go:build !race

package policies_test

// often is how often each decision is made again; REGATTA_SHUFFLES is another
// number.
const often = 1000

// swaps is how many there are under load.
const swaps = 100
