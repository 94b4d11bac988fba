//go:build race

package proptest

// Race is true with the race detector.
const Race = true
