// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestTheSameSeedFillsTheSameWay(t *testing.T) {
	one, two := New(1), New(1)
	different := 0
	for range 20 {
		a, b := &corev1.Pod{}, &corev1.Pod{}
		one.Fill(a)
		two.Fill(b)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("(-one +two):\n%s", diff)
		}
		one.Fill(b)
		two.Fill(&corev1.Pod{})
		if !cmp.Equal(a, b) {
			different++
		}
	}
	if different < 19 {
		t.Errorf("of 20 objects %d differ from the one before", different)
	}
}

// What is filled in must be what JSON can say, or properties would fail for what no client can send.
func TestJSONChangesNothingThatWasFilled(t *testing.T) {
	filler := New(2)
	for range 20 {
		filled, got := &corev1.Pod{}, &corev1.Pod{}
		filler.Fill(filled)
		text, err := json.Marshal(filled)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, got); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(got)
		if err != nil || string(again) != string(text) {
			t.Fatalf("got  %s, %v\nwant %s", again, err, text)
		}
	}
}
