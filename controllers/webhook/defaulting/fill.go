// SPDX-License-Identifier: Apache-2.0

// Package defaulting fills in fields that a user left out.
package defaulting

// Unset fills in a field that is not there.
func Unset[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// Empty fills in a value that is empty: a text, a number.
func Empty[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
