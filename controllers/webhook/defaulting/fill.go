// SPDX-License-Identifier: Apache-2.0

// Package defaulting fills in fields that a user left out.
package defaulting

// SetIfNil fills in a field that is not there.
func SetIfNil[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// SetIfEmpty fills in a value that is empty: a text, a number.
func SetIfEmpty[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
