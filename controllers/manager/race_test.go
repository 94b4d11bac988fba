// SPDX-License-Identifier: Apache-2.0

//go:build race

package manager

// testMemory is the limit of the gate's process: the race detector keeps a
// shadow of all memory, which counts.
const testMemory = 1 << 46
