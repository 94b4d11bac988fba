//go:build !race

package draws

// Race is true with the race detector.
const Race = false
