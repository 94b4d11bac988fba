// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/test/proptest"
)

// Each form breaks a value into pieces that are shorter than what is looked for.
func TestAValueIsFoundInFormsThatBreakIt(t *testing.T) {
	for _, value := range []string{"p@ss/w0rd+", "hunt er&\"<'2>", "a\nb\nc\nd\ne\nf", "k\u00e9y-\u00fcber"} {
		c := ContentsOf(&corev1.Secret{Data: map[string][]byte{"k": []byte(value)}})
		lines, err := json.MarshalIndent(numbersOf(value), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var colons []string
		for _, b := range []byte(value) {
			colons = append(colons, fmt.Sprintf("%02X", b))
		}
		for name, said := range map[string]string{
			"in a query":                 url.QueryEscape(value),
			"in the path of a URL":       url.PathEscape(value),
			"as a login of a URL":        url.UserPassword("ann", value).String(),
			"in HTML":                    html.EscapeString(value),
			"in quotes within quotes":    fmt.Sprintf("%q", fmt.Sprintf("%q", value)),
			"in hex with spaces":         fmt.Sprintf("% x", value),
			"as Go source":               fmt.Sprintf("%#v", []byte(value)),
			"in hex with colons":         strings.Join(colons, ":"),
			"in numbers on lines":        string(lines),
			"in numbers as YAML":         "- " + strings.ReplaceAll(strings.Trim(fmt.Sprint([]byte(value)), "[]"), " ", "\n- "),
			"in hex within quoted quote": fmt.Sprintf("%q", fmt.Sprintf("%x", value)),
		} {
			if !c.AppearsIn("it says " + said + ".") {
				t.Errorf("%q is not found %s: %s", value, name, said)
			}
		}
		if c.AppearsIn(`Get "https://registry.example.com/v2/shop%2Fweb/manifests/1.28?x=%41%42": dial tcp 10.0.0.1:443: connect: refused &amp; 12 34 56`) {
			t.Errorf("%q is found where it is not", value)
		}
	}
}

// What a Secret has in base64 is found whichever alphabet it is in.
func TestATextInTheAlphabetOfURLsIsFound(t *testing.T) {
	const hidden = "name=ann>>>;password=hunter2???hunter2~~~"
	for name, encoding := range map[string]*base64.Encoding{"of URLs": base64.RawURLEncoding, "of the standard": base64.StdEncoding} {
		c := ContentsOf(&corev1.Secret{Data: map[string][]byte{"k": []byte("session:" + encoding.EncodeToString([]byte(hidden)))}})
		if !c.AppearsIn("the login is " + hidden[12:]) {
			t.Errorf("what is in the alphabet %s is not found", name)
		}
		if c.AppearsIn("connection refused") {
			t.Errorf("of the alphabet %s, anything is found", name)
		}
	}
}

// What docker login writes has the name and the password in base64 alone.
func TestALoginThatASecretEncodesIsFound(t *testing.T) {
	config := `{"auths":{"registry.example.com":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("ann:hunter2hunter2")) + `"}}}`
	raw, err := json.Marshal(&corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Contents{
		"a Secret": ContentsOf(&corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)}}),
		"its JSON": ContentsOfJSON(raw),
	} {
		for text, want := range map[string]bool{
			"the password hunter2hunter2 is weak": true, "login ann:hunter2hunter2": true, `https://ann:hunter2hunter2@r/v2/`: true,
			"exceeded quota: few": false, "no route to host": false,
		} {
			if c.AppearsIn(text) != want {
				t.Errorf("%s has %q: %t, want %t", name, text, !want, want)
			}
		}
	}
}

func numbersOf(value string) (out []int) {
	for _, b := range []byte(value) {
		out = append(out, int(b))
	}
	return out
}

// A webhook writes all parts of the status that it refuses a Secret with.
func TestNoPartOfAStatusRepeatsASecret(t *testing.T) {
	c := ContentsOf(&corev1.Secret{Data: map[string][]byte{"login": []byte("user:hunter2")}})
	refused := func(reason metav1.StatusReason, field string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: reason, Message: "no: user:hunter2", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueInvalid, Field: field}, {Type: metav1.CauseTypeFieldValueRequired, Field: "type"},
		}}}}
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"the field":         {refused("Forbidden", "data[hunter2]"), "doing: the API server answers 403 Forbidden (a field: Invalid value, type: Required value); its message is left out, since it may repeat the Secret"},
		"the reason":        {refused("user:hunter2", "data"), "doing: the API server answers 403 (data: Invalid value, type: Required value); its message is left out, since it may repeat the Secret"},
		"a very long field": {refused("Forbidden", strings.Repeat("x", MostRead)), "doing: the API server answers 403 Forbidden (a field: Invalid value, type: Required value); its message is left out, since it may repeat the Secret"},
	} {
		if got := c.Error("doing", tc.err).Error(); got != tc.want {
			t.Errorf("%s: got %.300q", name, got)
		}
	}
}

// What it takes to read a text is bounded by its length: a set of its parts would take twice as much.
func TestReadingATextTakesLittleMemory(t *testing.T) {
	c := ContentsOf(&corev1.Secret{Data: map[string][]byte{"login": []byte("user:hunter2")}})
	var text strings.Builder
	for i := 0; text.Len() < MostRead-40; i++ {
		fmt.Fprintf(&text, "%x%d", i*7919, i*i)
	}
	c.AppearsIn(text.String()) // what is made once is made
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if c.AppearsIn(text.String()) {
		t.Error("the value is found where it is not")
	}
	runtime.ReadMemStats(&after)
	took := (after.TotalAlloc - before.TotalAlloc) / MostRead
	if took > 300 && !proptest.Race { // the race detector has pools forget at random, those of regular expressions among them
		t.Errorf("reading takes %d times the memory of the text", took)
	}
	if err := c.Error("doing", errors.New(text.String())); err == nil {
		t.Error("there is no error")
	}
}
