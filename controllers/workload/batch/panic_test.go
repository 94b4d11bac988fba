// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"strings"
	"testing"
)

func TestAPanicIsTheErrorOfItsActAlone(t *testing.T) {
	done := make([]bool, 2)
	acts := []func() error{
		func() error { panic("hostile") },
		func() error { done[0] = true; return nil },
		func() error { done[1] = true; return nil },
	}
	if err := RunParallel(2, acts); err == nil || !strings.Contains(err.Error(), "hostile") {
		t.Errorf("got %v, want the panic", err)
	}
	if !done[0] || !done[1] {
		t.Error("the acts beside it were not done")
	}
}
