// SPDX-License-Identifier: Apache-2.0

// Package redact removes the contents of Secrets from conditions, events, logs and responses of admission: users who may read
// these may not be allowed to read the Secret.
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

// MostRead is how many bytes of a text are read. A text is decoded in many ways, which together take some two hundred times its memory. So a
// longer text, such as a response of a webhook, counts as having the contents.
const MostRead = 16 << 10

// Contents are the values that must not be repeated. Contents that could not be read match every text.
type Contents struct {
	values  [][]byte
	unknown bool
}

// ContentsOf returns the contents of a Secret.
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

// addValue adds a value, and the texts that it has in base64, such as the login in a Docker configuration.
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

// isText reports whether bytes are a text. Most words are valid base64, but do not decode to a text.
func isText(b []byte) bool {
	return utf8.Valid(b) && !slices.ContainsFunc(b, func(one byte) bool { return one < ' ' && one != '\n' && one != '\r' && one != '\t' })
}

// ContentsOfJSON returns the contents of a Secret as JSON, which need not be valid: values may have any type.
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

// AppearsIn reports whether a text has a value, or a part of one that is not short, literally or in an encoding that programs use. It returns
// true for a text of more than MostRead bytes.
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

// partsOf returns all parts of the length that must not be shared, sorted: a set would take many times the memory.
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

// Error returns an error without the API server's message about an invalid object. Of any other error it keeps the message
// unless that repeats contents. The result wraps nothing, so callers examine the error before.
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

// fieldsOf names the invalid fields in a status, and what is wrong with each. A field whose name may repeat the
// Secret is not named.
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

// Describe says what is wrong with a field in the terms of the API server, without the value.
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

// DecodeError returns why JSON is no valid object, without its contents.
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
