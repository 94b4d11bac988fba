// SPDX-License-Identifier: Apache-2.0

package annotation_test

import (
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/controllers/annotation"
	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

func FuzzDecode(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		byName, err := annotation.Decode[map[string]*struct{ A map[string]int }]("example", text)
		if byName["a"] == nil {
			byName["a"] = &struct{ A map[string]int }{} // must not be a nil map
		}
		for name, e := range byName {
			if e == nil {
				t.Errorf("element %q is nil", name)
			}
		}
		if err != nil && !strings.Contains(err.Error(), "annotation example") {
			t.Errorf("the error does not name the annotation: %v", err)
		}
		list, _ := annotation.Decode[[]*int]("example", text)
		for i, e := range list {
			if e == nil {
				t.Errorf("element %d is nil", i)
			}
		}
		if one, _ := annotation.Decode[*int]("example", text); one == nil {
			t.Error("the pointer is nil")
		}
	})
}

func TestLargeTextsAreRefused(t *testing.T) {
	_, err := annotation.Decode[any]("example", `"`+strings.Repeat("x", annotation.MaxSize)+`"`)
	if err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("got %v, want an error of the size", err)
	}
}
