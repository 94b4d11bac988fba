// SPDX-License-Identifier: Apache-2.0

// Package defaulting sets fields that a user left out.
package defaulting

// SetIfNil sets a field that is nil.
func SetIfNil[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// SetIfEmpty sets a value that is empty, such as a text or a number.
func SetIfEmpty[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
