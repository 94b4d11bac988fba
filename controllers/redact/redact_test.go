// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
)

func TestErrorsDoNotRepeatASecret(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	c := ContentsOf(&corev1.Secret{Data: map[string][]byte{"login": []byte("user:hunter2"), "pin": []byte("4711")}})
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a network that fails":           {errors.New("no route to host"), "doing: no route to host"},
		"an error with a value":          {errors.New("cannot send user:hunter2"), "doing: it failed for a reason that is left out, since it may repeat the Secret"},
		"an error with a part of it":     {errors.New("cannot send hunter2"), "doing: it failed for a reason that is left out, since it may repeat the Secret"},
		"an error with a short value":    {errors.New("code 4711"), "doing: it failed for a reason that is left out, since it may repeat the Secret"},
		"an error with it in base64":     {errors.New("dXNlcjpodW50ZXIy"), "doing: it failed for a reason that is left out, since it may repeat the Secret"},
		"a quota":                        {apierrors.NewForbidden(secrets, "ca", errors.New("exceeded quota: few")), `doing: secrets "ca" is forbidden: exceeded quota: few`},
		"a webhook that repeats a value": {apierrors.NewForbidden(secrets, "ca", errors.New("hunter2 is weak")), "doing: the API server answers 403 Forbidden; its message is left out, since it may repeat the Secret"},
		"a field that is wrong": {apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "ca", field.ErrorList{field.Invalid(field.NewPath("data", "login"), "u", "x"), field.Required(field.NewPath("type"), "y")}),
			"doing: the API server answers 422 Invalid (data.login: Invalid value, type: Required value); its message is left out, since it may repeat the Secret"},
		"a request that is wrong": {apierrors.NewBadRequest("cannot unmarshal number 1"), "doing: the API server answers 400 BadRequest; its message is left out, since it may repeat the Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.Error("doing", tc.err); got.Error() != tc.want || errors.Unwrap(got) != nil {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestJSONThatIsNoSecretHasContentsToo(t *testing.T) {
	for raw, texts := range map[string][]string{
		`{"stringData":{"a":"hunter2"}}`:    {"hunter2"},
		`{"data":{"a":"aHVudGVyMg=="}}`:     {"hunter2", "aHVudGVyMg=="},
		`{"stringData":{"a":12345678}}`:     {"number 12345678"},
		`{"data":{"a":{"b":["hunter2"]}}}`:  {"hunter2"},
		`{"data":"hunter2"}`:                {"hunter2", "anything"},
		`{"data":{"a":"` + "\u00e9" + `"}}`: {"\u00e9"},
	} {
		c := ContentsOfJSON([]byte(raw))
		for _, text := range texts {
			if !c.AppearsIn("it says " + text + ".") {
				t.Errorf("%q is not in %s", text, raw)
			}
		}
	}
	if ContentsOfJSON([]byte(`{"metadata":{"name":"ca"}}`)).AppearsIn("Secret ca") {
		t.Error("a Secret without data has contents")
	}
}

func TestErrorsOfDecodingDoNotRepeatASecret(t *testing.T) {
	for raw, want := range map[string]string{
		`{"stringData":{"a":12345678}}`: "stringData must be of type string",
		`{"data":{"a":"hunter2!"}}`:     "data has a value that is not in base64",
		`{"data":{"a":hunter2}}`:        "it is no proper Secret",
	} {
		if got := DecodeError("Secret", json.Unmarshal([]byte(raw), &corev1.Secret{})); !strings.HasPrefix(got.Error(), strings.TrimSuffix(want, " must be of type string")) || strings.Contains(got.Error(), "1234") || strings.Contains(got.Error(), "hunter") {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}

func TestNoErrorHasAValue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.SliceOfN(rapid.ByteRange('0', '9'), 1, 40).Draw(rt, "value")
		c := ContentsOf(&corev1.Secret{Data: map[string][]byte{"k": value}})
		before, after := rapid.StringMatching(`[a-z ]{0,20}`).Draw(rt, "before"), rapid.StringMatching(`[a-z ]{0,20}`).Draw(rt, "after")
		said := rapid.SampledFrom([]string{string(value), base64.StdEncoding.EncodeToString(value)}).Draw(rt, "said")
		if got := c.Error("doing", errors.New(before+said+after)).Error(); strings.Contains(got, said) {
			rt.Errorf("%q has %q", got, said)
		}
	})
}

func TestAValueIsFoundHoweverItIsWritten(t *testing.T) {
	for _, value := range []string{"hunter2hunter2", "p@ss\nw0rd", `ab"cd"ef"gh`, `a\b\c\d\e\f`, "<&>'<&>'<&>", "4711", "k\u00e9y-\u00fcber"} {
		c := ContentsOf(&corev1.Secret{Data: map[string][]byte{"k": []byte(value)}})
		inJSON, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		for name, said := range map[string]string{
			"as it is":                   value,
			"in quotes":                  fmt.Sprintf("%q", value),
			"in quotes of ASCII":         fmt.Sprintf("%+q", value),
			"as JSON":                    string(inJSON),
			"in hex":                     fmt.Sprintf("%x", value),
			"in hex of capital letters":  fmt.Sprintf("%X", value),
			"in numbers":                 fmt.Sprint([]byte(value)),
			"in numbers with commas":     strings.ReplaceAll(fmt.Sprint([]byte(value)), " ", ", "),
			"in base64":                  base64.StdEncoding.EncodeToString([]byte(value)),
			"in base64 without padding":  base64.RawStdEncoding.EncodeToString([]byte(value)),
			"in base64 of URLs":          base64.URLEncoding.EncodeToString([]byte(value)),
			"in base64 of a login":       base64.StdEncoding.EncodeToString([]byte("u:" + value)),
			"in base64 of another login": base64.StdEncoding.EncodeToString([]byte("al:" + value)),
		} {
			if !c.AppearsIn("it says " + said + ".") {
				t.Errorf("%q is not found %s: %s", value, name, said)
			}
		}
	}
}

// A long text is read in so many forms that it would take many times its own memory, so that it is taken to have the contents.
func TestALongTextIsNotRead(t *testing.T) {
	c := ContentsOf(&corev1.Secret{Data: map[string][]byte{"login": []byte("user:hunter2")}})
	for length, want := range map[int]bool{MostRead: false, MostRead + 1: true, 3 << 20: true} {
		text := strings.Repeat(`\x41 65,66 `, length/11+1)[:length]
		if got := c.AppearsIn(text); got != want {
			t.Errorf("%d bytes have the contents: %t, want %t", length, got, want)
		}
		if err := c.Error("doing", errors.New(text)); len(err.Error()) > MostRead+len("doing: ") || want && strings.Contains(err.Error(), `\x41`) {
			t.Errorf("the error of %d bytes has %d", length, len(err.Error()))
		}
	}
	long := strings.Repeat("x", MostRead+1)
	if allocated := testing.AllocsPerRun(1, func() { c.AppearsIn(long) }); allocated > 0 {
		t.Errorf("a long text is read: %.0f allocations", allocated)
	}
}
