// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/regatta-sh/regatta/test/install"
)

// A rendering is what Helm says of the chart with some values.
type rendering struct {
	once   sync.Once
	ended  bool
	output string
	err    error
}

// renderings has a rendering for each list of arguments: Helm takes a second of a processor for one, many tests look at
// that of the defaults, and the same arguments render the same objects.
var renderings sync.Map

// renderTemplates runs helm template, once for all tests with the same arguments.
func renderTemplates(t *testing.T, args []string) (string, error) {
	t.Helper()
	known, _ := renderings.LoadOrStore(strings.Join(args, "\x00"), &rendering{})
	r := known.(*rendering)
	r.once.Do(func() {
		r.output, r.err = install.Helm(t, "", "template", args...)
		r.ended = true
	})
	if !r.ended {
		return "", errors.New("running helm template: it could not be run for an earlier test")
	}
	return r.output, r.err
}
