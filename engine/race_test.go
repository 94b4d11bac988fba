// SPDX-License-Identifier: Apache-2.0

//go:build race

package engine

// raced is true where the race detector makes everything several times slower and larger.
const raced = true
