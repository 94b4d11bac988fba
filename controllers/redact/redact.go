// SPDX-License-Identifier: Apache-2.0

// Package redact keeps the contents of Secrets out of conditions, events, logs and answers of admission: those who read these
// need not be allowed to read the Secret.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shared is how many bytes a text and a value must have in common for the text to repeat the value in part.
const shared = 6

// MostRead is how many bytes of a text are read. A text is read in many forms, which take some two hundred times its memory together, so that a
// longer one, such as an answer of a webhook, is taken to have the contents.
const MostRead = 16 << 10

// Contents are what must not be repeated. Those that could not be read match every text.
type Contents struct {
	values  [][]byte
	unknown bool
}

// ContentsOf are those of a Secret.
func ContentsOf(secret *corev1.Secret) Contents {
	c := Contents{}
	for _, value := range secret.Data {
		c.addValue(value)
	}
	for _, value := range secret.StringData {
		c.addValue([]byte(value))
	}
	return c
}

// addValue adds a value, and the texts that it has in base64, such as the login of a configuration of Docker: who reads it knows these too.
func (c *Contents) addValue(value []byte) {
	c.values = append(c.values, value)
	for _, part := range inBase64.FindAll(value, -1) {
		part = []byte(inStandardAlphabet(string(part)))
		read := make([]byte, base64.RawStdEncoding.DecodedLen(len(part)))
		n, err := base64.RawStdEncoding.Decode(read, part)
		if read = read[:n]; err == nil && n > shared && isText(read) {
			c.values = append(c.values, read)
		}
	}
}

// isText reports whether bytes are a text: most words are base64 of something else.
func isText(b []byte) bool {
	return utf8.Valid(b) && !slices.ContainsFunc(b, func(one byte) bool { return one < ' ' && one != '\n' && one != '\r' && one != '\t' })
}

// ContentsOfJSON are those of a Secret as JSON, which need not be a proper one: values may be anything.
func ContentsOfJSON(raw []byte) Contents {
	object := struct {
		Data       map[string]json.RawMessage `json:"data"`
		StringData map[string]json.RawMessage `json:"stringData"`
	}{}
	if json.Unmarshal(raw, &object) != nil {
		return Contents{unknown: true}
	}
	c := Contents{}
	for _, values := range []map[string]json.RawMessage{object.Data, object.StringData} {
		for _, value := range values {
			text := ""
			if json.Unmarshal(value, &text) != nil {
				c.addValue(value)
				continue
			}
			c.addValue([]byte(text))
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
				c.addValue(decoded)
			}
		}
	}
	return c
}

// AppearsIn reports whether a text has a value, or a part of one that is not short, as it is or in a form that programs write values in. It is so
// of a text of more than MostRead bytes.
func (c Contents) AppearsIn(text string) bool {
	if c.unknown || len(text) > MostRead {
		return true
	}
	readings := readingsOf(text)
	parts := partsOf(readings)
	return slices.ContainsFunc(c.values, func(value []byte) bool {
		if len(value) > 0 && len(value) <= shared {
			return slices.ContainsFunc(readings, func(reading []byte) bool { return bytes.Contains(reading, value) })
		}
		for i := 0; i+shared <= len(value); i++ {
			if _, found := slices.BinarySearch(parts, partOf(value[i:])); found {
				return true
			}
		}
		return false
	})
}

// partsOf are all parts of as many bytes as must not be in common, sorted: a set would take many times their memory.
func partsOf(readings [][]byte) []uint64 {
	n := 0
	for _, reading := range readings {
		n += max(len(reading)-shared+1, 0)
	}
	out := make([]uint64, 0, n)
	for _, reading := range readings {
		for i := 0; i+shared <= len(reading); i++ {
			out = append(out, partOf(reading[i:]))
		}
	}
	slices.Sort(out)
	return out
}

// partOf is the part at the beginning of bytes, as a number.
func partOf(b []byte) (part uint64) {
	for _, one := range b[:shared] {
		part = part<<8 | uint64(one)
	}
	return part
}

// Error is an error without what the API server says of an object that it finds wrong, and of any other error what repeats no
// contents. It wraps nothing: callers look at the error before.
func (c Contents) Error(doing string, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		if c.AppearsIn(err.Error()) {
			return fmt.Errorf("%s: it failed for a reason that is left out, since it may repeat the Secret", doing)
		}
		return fmt.Errorf("%s: %s", doing, err.Error()) // it must not be unwrapped
	}
	s := status.Status()
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !c.AppearsIn(err.Error()) {
		return fmt.Errorf("%s: %s", doing, err.Error()) // it must not be unwrapped
	}
	reason := ""
	if s.Reason != "" && !c.isIn(string(s.Reason)) {
		reason = " " + string(s.Reason)
	}
	return fmt.Errorf("%s: the API server answers %d%s%s; its message is left out, since it may repeat the Secret", doing, s.Code, reason, c.fieldsOf(s))
}

// mostNamed is how long the name of a field or a reason may be. Webhooks write them.
const mostNamed = 256

// isIn reports whether a name has contents, or is no name since it is too long.
func (c Contents) isIn(name string) bool { return len(name) > mostNamed || c.AppearsIn(name) }

// fieldsOf names the fields that a status finds wrong, and how. One whose name may repeat the Secret has none.
func (c Contents) fieldsOf(s metav1.Status) string {
	if s.Details == nil || len(s.Details.Causes) == 0 {
		return ""
	}
	const most = 10
	var out []string
	for i, cause := range s.Details.Causes {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(s.Details.Causes)-most))
			break
		}
		name := cause.Field
		if c.isIn(name) {
			name = "a field"
		}
		out = append(out, name+": "+Describe(cause.Type))
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// Describe says what is wrong with a field in the words of the API server, without the value.
func Describe(cause metav1.CauseType) string {
	switch cause {
	case metav1.CauseTypeFieldValueRequired:
		return "Required value"
	case metav1.CauseTypeFieldValueDuplicate:
		return "Duplicate value"
	case metav1.CauseTypeFieldValueNotSupported:
		return "Unsupported value"
	case metav1.CauseTypeForbidden:
		return "Forbidden"
	case metav1.CauseTypeTooLong:
		return "Too long"
	case metav1.CauseTypeTooMany:
		return "Too many"
	case metav1.CauseTypeTypeInvalid:
		return "Invalid value"
	}
	return "Invalid value"
}

// DecodeError is why JSON is no proper object, without what it has.
func DecodeError(kind string, err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("%s must be of type %s", wrong.Field, wrong.Type)
	}
	if errors.As(err, new(base64.CorruptInputError)) {
		return errors.New("data has a value that is not in base64")
	}
	return fmt.Errorf("it is no proper %s", kind)
}
