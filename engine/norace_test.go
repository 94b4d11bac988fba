// SPDX-License-Identifier: Apache-2.0

//go:build !race

package engine

const raced = false

// Raced is raced for tests in package engine_test.
const Raced = raced
