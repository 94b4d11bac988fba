// SPDX-License-Identifier: Apache-2.0

package conversiondata

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// number is a mirror whose field is 0 if unset, and cannot say numbers beyond 99.
var number = Mirror[int]{
	Key: "n",
	Parse: func(text string) (int, bool) {
		value, err := strconv.Atoi(text)
		return value, err == nil && value <= 99
	},
	Format: strconv.Itoa,
}

func TestMirrorFromFieldAndBack(t *testing.T) {
	for _, tc := range []struct {
		name      string
		value     int
		text      string // annotation of the v1beta1 object
		spelling  string
		want      string // annotation of the v1alpha1 object
		kept      Originals
		cannotSay bool
	}{
		{name: "no field is no annotation"},
		{name: "a field is an annotation", value: 7, want: "7"},
		{name: "a field is spelled as it was", value: 7, spelling: "+7", want: "+7"},
		{name: "a spelling of another value is of no use", value: 8, spelling: "+7", want: "8"},
		{name: "a spelling of no value is kept", spelling: "00", want: "00"},
		{name: "an annotation that says nothing is shown", text: "x", want: "x"},
		{name: "an annotation without a field is shown", text: "7", want: "7", kept: Originals{"n": {Is: Only, Text: "7"}}},
		{name: "an annotation that agrees is shown", value: 7, text: "+7", want: "+7", kept: Originals{"n": {Is: Both}}},
		{name: "an annotation that contradicts is not shown", value: 7, text: "8", want: "7", kept: Originals{"n": {Is: Stale, Text: "8"}}},
		{name: "nor is one that says nothing beside a field", value: 7, text: "x", want: "7", kept: Originals{"n": {Is: Stale, Text: "x"}}},
		{name: "a value may be too much for an annotation", value: 100, cannotSay: true},
		{name: "a value that is too much leaves an annotation alone", value: 100, text: "7", want: "7", kept: Originals{"n": {Is: Only, Text: "7"}}, cannotSay: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var annotations map[string]string
			if tc.text != "" {
				SetMetadata(&annotations, "n", tc.text)
			}
			var spellings Spellings
			if tc.spelling != "" {
				spellings = Spellings{"n": tc.spelling}
			}
			var kept Originals
			if says := number.FromField(tc.value, &annotations, spellings, &kept); says == tc.cannotSay {
				t.Errorf("says: %v", says)
			}
			if got := annotations["n"]; got != tc.want {
				t.Errorf("annotation %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.kept, kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			var again Spellings
			value, said := number.ToField(&annotations, kept, &again)
			if want := tc.value; !tc.cannotSay && value != want || tc.cannotSay && said {
				t.Errorf("came back as %d, %v", value, said)
			}
			if annotations["n"] != tc.text {
				t.Errorf("the annotation came back as %q", annotations["n"])
			}
		})
	}
}

func TestAWriterOfTheMirrorIsHeard(t *testing.T) {
	for _, tc := range []struct {
		name  string
		text  string
		kept  Originals
		value int
		left  string
		spell Spellings
	}{
		{name: "removing it unsets the field, and takes what contradicted it along", kept: Originals{"n": {Is: Stale, Text: "8"}}},
		{name: "changing an annotation that was only that makes it a field", text: "9", kept: Originals{"n": {Is: Only, Text: "7"}}, value: 9},
		{name: "changing one that agreed with its field changes both", text: "9", kept: Originals{"n": {Is: Both}}, value: 9, left: "9"},
		{name: "changing it to what was stale makes that agree", text: "+8", kept: Originals{"n": {Is: Stale, Text: "8"}}, value: 8, left: "+8"},
		{name: "changing it to something else leaves what was stale", text: "9", kept: Originals{"n": {Is: Stale, Text: "8"}}, value: 9, left: "8"},
		{name: "breaking it unsets the field and leaves the annotation", text: "x", kept: Originals{"n": {Is: Both}}, left: "x"},
		{name: "its spelling is kept", text: "+9", value: 9, spell: Spellings{"n": "+9"}},
		{name: "nothing at all, said in words, is kept", text: "0", spell: Spellings{"n": "0"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var annotations map[string]string
			if tc.text != "" {
				SetMetadata(&annotations, "n", tc.text)
			}
			var spellings Spellings
			value, _ := number.ToField(&annotations, tc.kept, &spellings)
			if value != tc.value || annotations["n"] != tc.left {
				t.Errorf("got %d and annotation %q, want %d and %q", value, annotations["n"], tc.value, tc.left)
			}
			if diff := cmp.Diff(tc.spell, spellings); diff != "" {
				t.Errorf("spellings (-want +got):\n%s", diff)
			}
		})
	}
}
