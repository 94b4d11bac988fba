// SPDX-License-Identifier: Apache-2.0

//go:build !race

package proptest

// Race is true with the race detector.
const Race = false
