// SPDX-License-Identifier: Apache-2.0

package term_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/term"
)

type inner struct {
	Deep string `json:"deep"`
	Name string `json:"name"` // hidden by the outer one
}

type kind string

type everything struct {
	inner  `json:",inline"`
	Name   string            `json:"name"`
	Plain  bool              // no tag
	Hidden string            `json:"-"`
	I      int64             `json:"i"`
	U      uint64            `json:"u"`
	F      float64           `json:"f"`
	Kind   kind              `json:"kind"`
	Map    map[string]int    `json:"map,omitempty"`
	Kinds  map[kind][]string `json:"kinds"`
	List   []inner           `json:"list,omitempty"`
	Fixed  [2]int            `json:"fixed"`
	Ptr    *inner            `json:"ptr"`
	Opt    *int              `json:"opt,omitempty"`
	Any    any               `json:"any"`
	When   time.Time         `json:"when,omitzero"`
	Addr   netip.Addr        `json:"addr"`
	Raw    []byte            `json:"raw,omitempty"`
	Number json.Number       `json:"number"`
	self   int               //nolint:unused // must not be seen
}

type tree struct {
	Name string `json:"name"`
	Kids []tree `json:"kids,omitempty"`
	Up   *tree  `json:"up,omitempty"`
}

func full() everything {
	n := 7
	return everything{
		inner: inner{Deep: "d", Name: "lost"}, Name: "n", Plain: true, Hidden: "h", I: math.MinInt64, U: math.MaxUint64,
		F: 0.1, Kind: "k", Map: map[string]int{"b": 2, "a": 1}, Kinds: map[kind][]string{"x": {"y"}}, List: []inner{{Deep: "1"}},
		Ptr: &inner{Deep: "p"}, Opt: &n, Any: map[string]any{"x": []any{1, "a", nil, true, 1.5}},
		When: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Addr: netip.MustParseAddr("10.0.0.1"), Raw: []byte{1, 2}, Number: "12345678901234567890.5",
	}
}

func TestEncodeIsWhatJSONWouldBe(t *testing.T) {
	empty := everything{Kinds: map[kind][]string{}, Number: "0"}
	for name, v := range map[string]any{
		"a struct with everything in it":   full(),
		"a pointer to it":                  new(full()),
		"empty fields":                     empty,
		"a type that contains itself":      tree{Name: "a", Kids: []tree{{Name: "b", Kids: []tree{{Name: "c"}}}}, Up: &tree{Name: "u"}},
		"a plain map":                      map[string]any{"a": 1, "b": []string{"x"}},
		"text":                             "x",
		"nothing":                          nil,
		"a number at the edge of a float":  int64(1<<53 + 1),
		"a float that is a whole number":   float64(3),
		"a float that is larger than int":  1e300,
		"a small float":                    float32(0.1),
		"the question of a decision point": rollout.PlanInput{Groups: map[string]map[string]rollout.Group{"zone": {"a": {Total: 1}}}},
		"facts with embedded facts":        rollout.VictimFacts{PodFacts: rollout.PodFacts{Name: "p", Labels: map[string]string{"a": "b"}}, Available: 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&term.Codec{}).Encode(v)
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			want, err := ast.ValueFromReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if ast.Compare(got, want) != 0 {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

func TestNilIsEmpty(t *testing.T) {
	got, err := (&term.Codec{}).Encode(struct {
		L []int          `json:"l"`
		M map[string]int `json:"m"`
		P *int           `json:"p"`
	}{})
	if err != nil || got.String() != `{"l": [], "m": {}, "p": null}` {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	cycle := &tree{}
	cycle.Up = cycle
	loop := map[string]any{}
	loop["self"] = loop
	for name, tc := range map[string]struct {
		v    any
		want string
	}{
		"what is not a number":         {map[string]float64{"x": math.NaN()}, "x is not a finite number"},
		"infinity":                     {[]float64{math.Inf(1)}, "[0] is not a finite number"},
		"text in the place of numbers": {struct{ N json.Number }{"x"}, `N is "x", which is not a number`},
		"a channel":                    {struct{ C chan int }{}, "C is a chan int"},
		"a function deep inside":       {map[string]any{"a": []any{func() {}}}, "a[0] is a func()"},
		"keys that are not text":       {map[int]int{1: 1}, "keys are not text"},
		"pointers in a circle":         {cycle, "nested too deep"},
		"maps in a circle":             {loop, "nested too deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&term.Codec{}).Encode(tc.v)
			var fe *term.FieldError
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.As(err, &fe) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestGivenTermsAreTaken(t *testing.T) {
	c := &term.Codec{}
	in := rollout.RankInput{Pods: []rollout.PodFacts{{Name: "a"}, {Name: "b"}}}
	pods, err := c.Encode(in.Pods)
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Pods = nil
	got, err := c.Encode(in, term.Given{Field: "pods", Value: pods})
	if err != nil || ast.Compare(got, want) != 0 {
		t.Errorf("got %v, %v\nwant %v", got, err, want)
	}
	if _, err := c.Encode(in, term.Given{Field: "pod", Value: pods}); err == nil || !strings.Contains(err.Error(), "no such field") {
		t.Errorf("a field that is not there was taken: %v", err)
	}
	if _, err := c.Encode(7, term.Given{Field: "pod", Value: pods}); err == nil {
		t.Errorf("a field of a number was taken")
	}
}

func TestDecode(t *testing.T) {
	type all struct {
		B    bool            `json:"b,omitempty"`
		S    kind            `json:"s,omitempty"`
		I    int8            `json:"i,omitempty"`
		U    uint            `json:"u,omitempty"`
		F    float64         `json:"f,omitempty"`
		L    []int           `json:"l,omitempty"`
		M    map[kind]string `json:"m,omitempty"`
		P    *int            `json:"p"`
		A    any             `json:"a,omitempty"`
		K    [][]float64     `json:"k,omitempty"`
		When time.Time       `json:"when,omitzero"`
		Need *inner          `json:"need,omitempty"`
	}
	one := 1
	for name, tc := range map[string]struct {
		rego string
		want all
		err  string
	}{
		"nothing":                          {rego: `{}`},
		"each in its place":                {rego: `{"b": true, "s": "x", "i": 5, "u": 6, "f": 0.5}`, want: all{B: true, S: "x", I: 5, U: 6, F: 0.5}},
		"a whole number with a point":      {rego: `{"i": 3.0}`, want: all{I: 3}},
		"a whole number with an exponent":  {rego: `{"i": 1e2}`, want: all{I: 100}},
		"a set is a list in its order":     {rego: `{"l": {3, 1, 2}}`, want: all{L: []int{1, 2, 3}}},
		"null is no pointer":               {rego: `{"p": null}`},
		"a pointer":                        {rego: `{"p": 1}`, want: all{P: &one}},
		"anything":                         {rego: `{"a": {"x": [1, null, "y", true, {2}]}}`, want: all{A: map[string]any{"x": []any{json.Number("1"), nil, "y", true, []any{json.Number("2")}}}}},
		"keys of one length":               {rego: `{"k": [[1, 2.5], [-3, 4e3]]}`, want: all{K: [][]float64{{1, 2.5}, {-3, 4000}}}},
		"keys of different lengths":        {rego: `{"k": [[1], [], [2, 3, 4]]}`, want: all{K: [][]float64{{1}, {}, {2, 3, 4}}}},
		"a time":                           {rego: `{"when": "2026-01-02T03:04:05Z"}`, want: all{When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
		"a map":                            {rego: `{"m": {"x": "y"}}`, want: all{M: map[kind]string{"x": "y"}}},
		"a list where an object is wanted": {rego: `[]`, err: "the answer is an array, want an object"},
		"text where a boolean is wanted":   {rego: `{"b": "true"}`, err: "b is a string, want a boolean"},
		"a number where text is wanted":    {rego: `{"s": 1}`, err: "s is a number, want a string"},
		"a fraction":                       {rego: `{"i": 0.5}`, err: "i is not a whole number that fits"},
		"a number too large":               {rego: `{"i": 128}`, err: "i is not a whole number that fits"},
		"a number much too large":          {rego: `{"f": 1e999}`, err: "f is a number out of range"},
		"less than nothing":                {rego: `{"u": -1}`, err: "u is not a whole number of 0 or more"},
		"nonsense in a list":               {rego: `{"l": [1, 2, "x"]}`, err: "l[2] is a string"},
		"nonsense in keys":                 {rego: `{"k": [[1], [1, null]]}`, err: "k[1][1] is null, want a number"},
		"no list of keys":                  {rego: `{"k": [1]}`, err: "k[0] is a number, want an array of numbers"},
		"nonsense in a map":                {rego: `{"m": {"x": 1}}`, err: "m.x is a number"},
		"keys of a map that are no text":   {rego: `{"m": {1: "x"}}`, err: "m has a key that is a number"},
		"a field that is not there":        {rego: `{"z": 1}`, err: "z is not a field of the answer"},
		"a field missing deep inside":      {rego: `{"need": {"deep": "x"}}`, err: "need.name is missing"},
		"not a time":                       {rego: `{"when": "tomorrow"}`, err: "when is not understood"},
		"too many nodes":                   {rego: `{"l": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]}`, err: "it has at least 23 nodes, the limit is 20"},
		"too many nodes of anything":       {rego: `{"a": [[1,2,3,4,5,6,7,8,9,10],[1,2,3,4,5,6,7,8,9,10]]}`, err: "larger than"},
		"too many keys":                    {rego: `{"k": [[1,2,3,4,5,6,7,8,9,10],[1,2,3,4,5,6,7,8,9,10]]}`, err: "larger than"},
		"the longest text":                 {rego: `{"s": "` + strings.Repeat("x", 50) + `"}`, want: all{S: kind(strings.Repeat("x", 50))}},
		"too long a text":                  {rego: `{"s": "` + strings.Repeat("x", 51) + `"}`, err: "s has 51 bytes, and a text of an answer may have 50"},
		"too long a text in a map":         {rego: `{"m": {"x": "` + strings.Repeat("x", 51) + `"}}`, err: "m.x has 51 bytes"},
		"too long a text of anything":      {rego: `{"a": ["` + strings.Repeat("x", 51) + `"]}`, err: "a[0] has 51 bytes"},
		"too long a number of anything":    {rego: `{"a": ` + strings.Repeat("1", 51) + `}`, err: "a has 51 bytes"},
		"too long a time":                  {rego: `{"when": "` + strings.Repeat("x", 51) + `"}`, err: "when has 51 bytes"},
		"too long a key":                   {rego: `{"m": {"` + strings.Repeat("x", 51) + `": "y"}}`, err: "m.the name of a field has 51 bytes"},
		"too long a key of anything":       {rego: `{"a": {"` + strings.Repeat("x", 51) + `": "y"}}`, err: "a.the name of a field has 51 bytes"},
		"too long a field":                 {rego: `{"` + strings.Repeat("x", 51) + `": "y"}`, err: "the name of a field has 51 bytes"},
		"too much text":                    {rego: `{"m": {"a": "` + strings.Repeat("x", 49) + `", "b": "` + strings.Repeat("x", 50) + `"}}`, err: "it has at least 101 bytes of text, the limit is 100"},
		"too much text of anything":        {rego: `{"a": {"a": "` + strings.Repeat("x", 49) + `", "b": "` + strings.Repeat("x", 50) + `"}}`, err: "it has at least 101 bytes of text, the limit is 100"},
		"all the text there may be":        {rego: `{"m": {"a": "` + strings.Repeat("x", 49) + `", "b": "` + strings.Repeat("x", 49) + `"}}`, want: all{M: map[kind]string{"a": strings.Repeat("x", 49), "b": strings.Repeat("x", 49)}}},
		"null where a list is wanted":      {rego: `{"l": null}`, err: "l is null, want an array"},
	} {
		t.Run(name, func(t *testing.T) {
			var got all
			err := (&term.Codec{}).Decode(ast.MustParseTerm(tc.rego).Value, &got, term.Limits{Nodes: 20, Bytes: 100, Text: 50})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tc.want)
			}
		})
	}
	if err := (&term.Codec{}).Decode(ast.Null{}, all{}, term.Limits{Nodes: 1}); err == nil {
		t.Error("something that is not a pointer was filled")
	}
}

// FuzzRoundTrip holds encoding to what encoding/json does, and decoding to be
// its inverse, for any JSON.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x",null,true,{"b":{}}],"c":1e30}`))
	f.Add([]byte(`[[[]]]`))
	f.Add([]byte(`-0`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) != nil {
			return
		}
		c := &term.Codec{}
		encoded, err := c.Encode(v)
		if err != nil {
			var fe *term.FieldError
			if !errors.As(err, &fe) {
				t.Fatalf("not a typed error: %v", err)
			}
			return
		}
		var back any
		if err := c.Decode(encoded, &back, term.Limits{Nodes: 1 << 20, Bytes: 1 << 20, Text: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		again, err := c.Encode(back)
		if err != nil || ast.Compare(encoded, again) != 0 {
			t.Errorf("got %v, %v, want %v", again, err, encoded)
		}
	})
}

// FuzzDecode feeds any Rego value to the decoder of an answer.
func FuzzDecode(f *testing.F) {
	f.Add(`{"keys": [[1,2]], "lead": [[0]], "descending": [1], "holds": []}`)
	f.Add(`{"keys": {[1]}, "lead": [1], "descending": {1, "x"}, "holds": {{"reason": "a", "message": "b", "where": {"zone": "c"}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ast.ParseTerm(text)
		if err != nil || !parsed.IsGround() {
			return
		}
		var out rollout.RankOutput
		_ = (&term.Codec{}).Decode(parsed.Value, &out, term.Limits{Nodes: 1000, Bytes: 1000, Text: 100}) // must not panic
	})
}
