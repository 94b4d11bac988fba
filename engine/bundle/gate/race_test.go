// SPDX-License-Identifier: Apache-2.0

//go:build race

package gate_test

// childMemory is the limit of a child, none: the race detector keeps a
// shadow of all memory, which counts.
const childMemory = 1 << 46
