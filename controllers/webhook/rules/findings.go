// SPDX-License-Identifier: Apache-2.0

// Package rules has the checks that the webhooks of several kinds share: amounts
// and percentages, selectors, strategies, names. Messages name the field, its
// value and what is allowed.
package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Findings are the errors and warnings that the rules found in an object.
type Findings struct {
	Errs     field.ErrorList
	Warnings []string
}

// AddErrors adds errors.
func (f *Findings) AddErrors(errs ...*field.Error) { f.Errs = append(f.Errs, errs...) }

// AddWarning adds a warning about a field. Warnings do not refuse the object.
func (f *Findings) AddWarning(path *field.Path, format string, args ...any) {
	f.Warnings = append(f.Warnings, path.String()+": "+fmt.Sprintf(format, args...))
}

// OneOf requires one of the supported values.
func OneOf[T ~string](f *Findings, value T, path *field.Path, supported ...T) {
	for _, other := range supported {
		if value == other {
			return
		}
	}
	f.AddErrors(field.NotSupported(path, value, supported))
}

// FindDuplicates reports for each text whether an earlier one is the same.
func FindDuplicates(texts []string) []bool {
	seen, again := map[string]bool{}, make([]bool, len(texts))
	for i, text := range texts {
		again[i], seen[text] = seen[text], true
	}
	return again
}
