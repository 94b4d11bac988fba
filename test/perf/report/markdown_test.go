// SPDX-License-Identifier: Apache-2.0

package report

import "testing"

func TestMarkdown(t *testing.T) {
	got := Markdown([]string{"a", "b"}, [][]string{{"1", "2"}, {"3", ""}})
	if want := "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |  |\n"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
