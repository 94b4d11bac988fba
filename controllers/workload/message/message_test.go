// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/record"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/controllers/workload/message"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

func TestShorten(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", ""}, {"a\nb", "a; b"}, {strings.Repeat("a", message.MostBytes), strings.Repeat("a", message.MostBytes)},
		{strings.Repeat("a", message.MostBytes+1), strings.Repeat("a", message.MostBytes-3) + "..."},
	} {
		if got := message.Shorten(tc.text); got != tc.want {
			t.Errorf("%.20q is %.20q, want %.20q", tc.text, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.String().Draw(t, "text"), rapid.IntRange(1, 2000).Draw(t, "times"))
		if got := message.Shorten(text); len(got) > message.MostBytes || utf8.ValidString(text) && !utf8.ValidString(got) || strings.Contains(got, "\n") {
			t.Fatalf("it has %d bytes: %q", len(got), got)
		}
	})
}

// Whatever says something of 10,000 pods stays as short as what says it of ten.
func TestMessagesOverManyPodsAreBounded(t *testing.T) {
	names, errs := make([]string, 10_000), make([]error, 10_001)
	for i := range names {
		names[i] = fmt.Sprint("pod-", i)
		errs[i] = fmt.Errorf("creating pod %s: %s", names[i], strings.Repeat("x", 150))
	}
	if got := message.ListNames(names); got != "pod-0, pod-1, pod-2, pod-3, pod-4, pod-5, pod-6, pod-7, pod-8, pod-9 and 9990 more" {
		t.Errorf("of 10,000 names: %s", got)
	}
	if got := message.ListNames(names[:2]); got != "pod-0, pod-1" {
		t.Errorf("of two names: %s", got)
	}
	for i := range names {
		names[i] = strings.Repeat("n", 253)
	}
	if got := message.ListNames(names); len(got) > message.MostBytes || !strings.HasSuffix(got, " and 9990 more") {
		t.Errorf("of long names: %d bytes, %s", len(got), got)
	}
	for _, first := range []string{"", "x"} { // a cut may be within a character of two bytes
		for i := range names {
			names[i] = strings.Repeat("ü", 100)
		}
		names[0] = first
		if got := message.ListNames(names); len(got) > message.MostBytes || !utf8.ValidString(got) || !strings.HasSuffix(got, " and 9990 more") {
			t.Errorf("of long names of two bytes a character: %d bytes, valid: %t", len(got), utf8.ValidString(got))
		}
	}
	last := errors.New("the last")
	errs[9999] = last
	err := message.JoinErrors(errs...)
	if text := err.Error(); len(text) > 3000 || !strings.HasSuffix(text, "\nand 9990 more errors") || !errors.Is(err, last) {
		t.Errorf("of 10,000 errors: %d bytes; the last is one of them: %t", len(text), errors.Is(err, last))
	}
	if message.JoinErrors(nil, nil) != nil || message.JoinErrors(nil, last).Error() != "the last" {
		t.Error("nothing, or one error, is not as it is joined by package errors")
	}
	events := record.NewFakeRecorder(3)
	r := message.NewRecorder(events)
	r.Event(nil, "Warning", "A", err.Error())
	r.Eventf(nil, "Warning", "A", "%v 100%%", err)
	r.AnnotatedEventf(nil, nil, "Warning", "A", "%v 100%%", err)
	for range 3 {
		if text := <-events.Events; len(text) > message.MostBytes+len("Warning A ") {
			t.Errorf("an event has %d bytes", len(text))
		}
	}
}
