// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// Whatever a rule writes into a hold is counted, and is a copy.
func TestEveryTextOfAHoldIsCountedAndCopied(t *testing.T) {
	const size = 1000
	text := strings.Repeat("x", size)
	empty := (&Hold{}).CountBytes()
	typ := reflect.TypeFor[Hold]()
	for i := range typ.NumField() {
		var h Hold
		switch f := reflect.ValueOf(&h).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString(text)
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]string{"zone": text}))
		default:
			t.Fatalf("%s is a %s, which is not known here", typ.Field(i).Name, f.Kind())
		}
		if got := h.CountBytes(); got < empty+size {
			t.Errorf("%s is not counted: %d bytes, and %d without it", typ.Field(i).Name, got, empty)
		}
		copied := CloneHolds([]Hold{h, h})
		if !reflect.DeepEqual(copied, []Hold{h, h}) {
			t.Errorf("the copy is %+v", copied)
		}
		var texts []string
		for n := range copied {
			f := reflect.ValueOf(copied[n]).Field(i)
			if f.Kind() == reflect.Map {
				f = f.MapIndex(reflect.ValueOf("zone"))
			}
			texts = append(texts, f.String())
		}
		if unsafe.StringData(texts[0]) == unsafe.StringData(text) {
			t.Errorf("%s is no copy", typ.Field(i).Name)
		}
		if unsafe.StringData(texts[0]) != unsafe.StringData(texts[1]) {
			t.Errorf("%s is copied twice", typ.Field(i).Name)
		}
	}
}
