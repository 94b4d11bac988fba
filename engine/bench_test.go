// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"

	"github.com/regatta-sh/regatta/engine"
)

func BenchmarkDecide(b *testing.B) {
	for name, source := range map[string]string{"labelled": builtin, "constant": "package test\ngo := {\"go\": true, \"total\": 1, \"holds\": []}"} {
		b.Run(name, func(b *testing.B) {
			e := newEngine(b, source)
			in := facts{N: 1, Names: []string{"a", "b"}}
			b.ReportAllocs()
			for b.Loop() {
				engine.Decide(context.Background(), e, point(), subject(), in)
			}
		})
	}
}
