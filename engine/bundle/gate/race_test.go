//go:build race

package gate_test

// race is true with the race detector.
const race = true
