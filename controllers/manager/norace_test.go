// SPDX-License-Identifier: Apache-2.0

//go:build !race

package manager

// testMemory is the limit of the gate's process.
const testMemory = gateMemory
