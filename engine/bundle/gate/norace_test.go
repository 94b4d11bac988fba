// SPDX-License-Identifier: Apache-2.0

//go:build !race

package gate_test

// childMemory is the limit of a child, what the manager lets it have.
const childMemory = 256 << 20
