// SPDX-License-Identifier: Apache-2.0

// Package rules has the checks that the webhooks of several kinds share: amounts
// and percentages, selectors, strategies, names. Messages name the field, its
// value and what is allowed.
package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Findings are what the rules found in an object.
type Findings struct {
	Errs     field.ErrorList
	Warnings []string
}

// Add adds errors.
func (f *Findings) Add(errs ...*field.Error) { f.Errs = append(f.Errs, errs...) }

// Warn adds a warning about a field. Warnings do not refuse the object.
func (f *Findings) Warn(path *field.Path, format string, args ...any) {
	f.Warnings = append(f.Warnings, path.String()+": "+fmt.Sprintf(format, args...))
}

// OneOf wants one of some values.
func OneOf[T ~string](f *Findings, value T, path *field.Path, supported ...T) {
	for _, other := range supported {
		if value == other {
			return
		}
	}
	f.Add(field.NotSupported(path, value, supported))
}

// Duplicates answers for each text whether an earlier one is the same.
func Duplicates(texts []string) []bool {
	seen, again := map[string]bool{}, make([]bool, len(texts))
	for i, text := range texts {
		again[i], seen[text] = seen[text], true
	}
	return again
}
