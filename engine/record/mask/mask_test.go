// SPDX-License-Identifier: Apache-2.0

package mask_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record/mask"
)

func TestWhatIsHidden(t *testing.T) {
	m, err := mask.New("/input/**/owner", "/input/plan/*/x-*", "/result/keys")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ in, want, masked string }{
		"the value of a variable":          {`{"env":[{"name":"A","value":"x"},{"name":"B"}]}`, `{"env":[{"name":"A","value":"[masked]"},{"name":"B"}]}`, "/input/env/0/value"},
		"variables by name":                {`{"env":{"A":"x","B":1}}`, `{"env":{"A":"[masked]","B":0}}`, "/input/env/A /input/env/B"},
		"a name of a password":             {`{"labels":{"example.com/db-Password":"x","app":"web"}}`, `{"labels":{"example.com/db-Password":"[masked]","app":"web"}}`, "/input/labels/example.com~1db-Password"},
		"a name in two words":              {`{"apiKey":"x","API_KEY":"y","dbPass":"z","bypass":"w"}`, `{"apiKey":"[masked]","API_KEY":"[masked]","dbPass":"[masked]","bypass":"w"}`, "/input/API_KEY /input/apiKey /input/dbPass"},
		"a name with an escape":            {`{"\u0070assword":"x"}`, `{"\u0070assword":"[masked]"}`, "/input/password"},
		"a key in an annotation":           {`{"annotations":{"my-key":"x","keyed":"y"},"key":"z"}`, `{"annotations":{"my-key":"[masked]","keyed":"y"},"key":"z"}`, "/input/annotations/my-key"},
		"everything below a name":          {`{"token":{"a":["x"]},"tokens":["x"]}`, `{"token":{},"tokens":[]}`, "/input/token /input/tokens"},
		"a number":                         {`{"secret":17,"a":{"secret":-1.5e3}}`, `{"secret":0,"a":{"secret":0}}`, "/input/a/secret /input/secret"},
		"no yes and no, and no nothing":    {`{"hasToken":true,"secret":null,"password":"","secrets":[]}`, `{"hasToken":true,"secret":null,"password":"","secrets":[]}`, ""},
		"a document in a text":             {`{"annotations":{"x":"{ \"env\": [{\"value\": \"q\"}], \"n\": 1 }"}}`, `{"annotations":{"x":"{\"env\":[{\"value\":\"[masked]\"}],\"n\":1}"}}`, "/input/annotations/x"},
		"no document without a secret":     {`{"x":"{ \"a\": 1 }","y":"[info] {"}`, `{"x":"{ \"a\": 1 }","y":"[info] {"}`, ""},
		"the object as it was applied":     {`{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}`, `{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"[masked]"}}`, "/input/annotations/kubectl.kubernetes.io~1last-applied-configuration"},
		"arguments":                        {`{"args":["--db-password=x","--token","y","--v","2"]}`, `{"args":["[masked]","--token","[masked]","--v","2"]}`, "/input/args/0 /input/args/2"},
		"YAML":                             {`{"x":"a: 1\npassword: q\n"}`, `{"x":"[masked]"}`, "/input/x"},
		"no image, host or time":           {`{"x":"registry:5000/token-service:v1","y":"secret-store:8080","z":"2026-01-01T00:00:00Z"}`, `{"x":"registry:5000/token-service:v1","y":"secret-store:8080","z":"2026-01-01T00:00:00Z"}`, ""},
		"a URL with a password":            {`{"x":"postgres://u:p@db/x","y":"https://u@h/a:b@c"}`, `{"x":"[masked]","y":"https://u@h/a:b@c"}`, "/input/x"},
		"a private key":                    {`{"x":"-----BEGIN RSA PRIVATE KEY-----\nMII"}`, `{"x":"[masked]"}`, "/input/x"},
		"tokens that are known by looks":   {`["eyJh.eyJz.c2ln","ghp_0123456789abcdef","Bearer 0123456789"]`, `["[masked]","[masked]","[masked]"]`, "/input/0 /input/1 /input/2"},
		"where a secret is":                {`{"volumes":[{"name":"v","secret":{"secretName":"db","password":"x"}}],"imagePullSecrets":[{"name":"r"}]}`, `{"volumes":[{"name":"v","secret":{"secretName":"db","password":"[masked]"}}],"imagePullSecrets":[{"name":"r"}]}`, "/input/volumes/0/secret/password"},
		"where a variable is from":         {`{"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"db","key":"k"}}}]}`, `{"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"db","key":"k"}}}]}`, ""},
		"not where people named it so":     {`{"labels":{"secretName":"x"},"secret":{"secretName":"db"}}`, `{"labels":{"secretName":"[masked]"},"secret":{}}`, "/input/labels/secretName /input/secret"},
		"what a pattern names":             {`{"a":{"Owner":{"x":1},"other":1},"plan":{"q":{"x-y":true,"y":1}}}`, `{"a":{"Owner":{},"other":1},"plan":{"q":{"x-y":false,"y":1}}}`, "/input/a/Owner /input/plan/q/x-y"},
		"a text alone":                     {`"password=x"`, `"[masked]"`, "/input"},
		"nothing in nothing":               {`null`, `null`, ""},
		"documents in documents in a text": {`{"x":` + nested(`{"password":"deep-down"}`, 3) + `}`, `{"x":` + nested(`{"password":"[masked]"}`, 3) + `}`, "/input/x"},
		"no further than some":             {`{"x":` + nested(`{"a":"b"}`, 9) + `}`, `{"x":` + nested(`[masked]`, 4) + `}`, "/input/x"},
	} {
		t.Run(name, func(t *testing.T) {
			line, in := m.BeginLine(), []byte(tc.in)
			got := string(line.MaskJSON("input", in))
			if got != tc.want || strings.Join(line.MaskedPointers(), " ") != tc.masked {
				t.Errorf("got %s, masked %v", got, line.MaskedPointers())
			}
			if string(in) != tc.in {
				t.Error("the document was changed")
			}
		})
	}
}

// nested is a text that is a list of a text that is a list, and so on, of a
// document.
func nested(doc string, times int) string {
	for range times {
		text, _ := json.Marshal(doc)
		doc = "[" + string(text) + "]"
	}
	text, _ := json.Marshal(doc)
	return string(text)
}

func TestMessagesDoNotTellWhatWasHidden(t *testing.T) {
	m, err := mask.New()
	if err != nil {
		t.Fatal(err)
	}
	line := m.BeginLine()
	line.MaskJSON("input", []byte(`{"env":[{"name":"A","value":"hunter\"2"},{"name":"B","value":"web"}],"name":"hunter\"2"}`))
	got := string(line.MaskJSON("result", []byte(`{"holds":[{"message":"A of web is hunter\"2.","reason":"Full"}]}`)))
	if want := `{"holds":[{"message":"A of web is [masked].","reason":"Full"}]}`; got != want {
		t.Errorf("got %s", got)
	}
	if got := line.MaskMessage("error/message", `to_number: hunter"2`); got != "to_number: [masked]" {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(line.MaskedPointers(), " "); got != "/error/message /input/env/0/value /input/env/1/value /result/holds/0/message" {
		t.Errorf("masked %s", got)
	}
}

func TestPatternsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"input/x": "does not begin with /", "/inputs/x": "want /input, /result", "/input//x": `has the name ""`, "/input/a**": "** alone",
		"/input" + strings.Repeat("/a", 70): "at most 62", "": "does not begin",
	} {
		if _, err := mask.New(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTheContractHasNoSecrets keeps the names of our own fields apart from those
// of secrets: a fact that is hidden is no fact to replay with.
func TestTheContractHasNoSecrets(t *testing.T) {
	var look func(reflect.Type, string)
	seen := map[reflect.Type]bool{}
	look = func(of reflect.Type, path string) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
			look(of.Elem(), path)
		case reflect.Struct:
			if seen[of] {
				return
			}
			seen[of] = true
			for i := range of.NumField() {
				f := of.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if mask.IsSecretName(name) {
					t.Errorf("%s.%s is called like a secret", path, name)
				}
				look(f.Type, path+"."+name)
			}
		}
	}
	for _, p := range catalog.All() {
		look(p.In, string(p.Name)+" input")
		look(p.Out, string(p.Name)+" result")
	}
}

func TestAnyDepth(t *testing.T) {
	m, err := mask.New()
	if err != nil {
		t.Fatal(err)
	}
	const depth = 200_000
	for _, open := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		doc := strings.Repeat(open[0], depth) + `{"password":"x","b":1}` + strings.Repeat(open[1], depth)
		got := string(m.BeginLine().MaskJSON("input", []byte(doc)))
		if want := strings.Repeat(open[0], depth) + `{"password":"[masked]","b":1}` + strings.Repeat(open[1], depth); got != want {
			t.Error("a deep document is not masked as it should be")
		}
		text, _ := json.Marshal(map[string]string{"x": doc})
		if got := m.BeginLine().MaskJSON("input", text); bytes.Contains(got, []byte(`"x\"`)) {
			t.Error("a secret in a text that is too deep comes out")
		}
	}
}

const planted = "PLANTED"

// TestNoPlantedSecretComesOut draws documents of any shape with secrets at
// places that secrets are at.
func TestNoPlantedSecretComesOut(t *testing.T) {
	m, err := mask.New("/input/**/mine-*/**")
	if err != nil {
		t.Fatal(err)
	}
	plain := rapid.SampledFrom([]string{"a", "b/c", "~x", "name", "value", "message", "labels", "annotations", "spec", "é\"\\", "", "env-x", "volumes", "sources"})
	words := rapid.SampledFrom([]string{"password", "PassWord", "secret", "token", "api-key", "API_KEY", "x.io/credentials", "access.key", "db-pass", "clientSecret"})
	around := rapid.SampledFrom([]string{"", "my-", "x_", "example.com/"})
	var n int
	secret := func(t *rapid.T) any {
		n++
		switch rapid.IntRange(0, 4).Draw(t, "kind of secret") {
		case 0:
			return []any{planted, map[string]any{planted: planted}}
		case 1:
			return map[string]any{"a": planted, "b": map[string]any{"c": planted}}
		case 2:
			return 717171
		}
		return fmt.Sprint(rapid.SampledFrom([]string{"", "{", "[", `"`, "\\", "\u2028", "-", "://"}).Draw(t, "before"), planted, n, rapid.String().Draw(t, "after"))
	}
	var draw func(t *rapid.T, depth int) any
	draw = func(t *rapid.T, depth int) any {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		if depth == 0 {
			kind %= 3
		}
		switch kind {
		case 0:
			return rapid.String().Draw(t, "text")
		case 1:
			return rapid.Float64Range(-10, 10).Draw(t, "number")
		case 2:
			return rapid.SampledFrom([]any{true, false, nil}).Draw(t, "word")
		case 3, 4:
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "elements") {
				list = append(list, draw(t, depth-1))
			}
			if rapid.Bool().Draw(t, "an argument") {
				list = append(list, "--"+words.Draw(t, "argument")+"="+planted, "--token", planted)
			}
			return list
		case 5:
			return map[string]any{"env": []any{map[string]any{"name": "A", "value": secret(t)}}}
		case 6:
			return map[string]any{"mine-x": map[string]any{"any": secret(t)}, "env": map[string]any{"A": planted}}
		case 7:
			if depth < 3 {
				return nil // no deeper than documents in texts are looked into
			}
			text, _ := json.Marshal(draw(t, min(depth-2, 2)))
			return string(text)
		}
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			object[plain.Draw(t, "name")] = draw(t, depth-1)
		}
		if rapid.Bool().Draw(t, "with a secret") {
			object[around.Draw(t, "around")+words.Draw(t, "word")] = secret(t)
		}
		return object
	}
	rapid.Check(t, func(t *rapid.T) {
		n = 0
		doc, err := json.Marshal(draw(t, 5))
		if err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(doc)
		line := m.BeginLine()
		got := line.MaskJSON("input", doc)
		if !bytes.Equal(doc, before) {
			t.Fatal("the document was changed")
		}
		if !json.Valid(got) {
			t.Fatalf("it is no JSON: %s", got)
		}
		if bytes.Contains(got, []byte(planted)) || bytes.Contains(got, []byte("717171")) {
			t.Fatalf("a secret comes out of %s: %s", doc, got)
		}
		if bytes.Contains(doc, []byte(planted)) && len(line.MaskedPointers()) == 0 {
			t.Fatalf("nothing is said to be masked in %s", got)
		}
		if again := m.BeginLine().MaskJSON("input", got); !bytes.Equal(again, got) {
			t.Fatalf("masked again it is another\n%s\n%s", got, again)
		}
	})
}

func BenchmarkMask(b *testing.B) {
	m, err := mask.New()
	if err != nil {
		b.Fatal(err)
	}
	in := rollout.RankInput{}
	for i := range 1000 {
		in.Pods = append(in.Pods, rollout.PodFacts{Name: fmt.Sprint("web-", i), Labels: map[string]string{"app": "web", "zone": "a"}, Node: "node-1"})
	}
	doc, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		m.BeginLine().MaskJSON("input", doc)
	}
}
