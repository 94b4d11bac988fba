// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"strings"
	"testing"
)

func TestChangesAreParsed(t *testing.T) {
	long := strings.Repeat("x", MaxBytes)
	for text, want := range map[string]string{
		`update=3`:                              `update=3`,
		`input.update=3`:                        `update=3`,
		`update-`:                               `update-`,
		`update=`:                               `update=`,
		`update=-`:                              `update=-`,
		`workload.annotations["approved"]="r2"`: `workload.annotations.approved="r2"`,
		`workload.labels["app.kubernetes.io/a"]-`: `workload.labels["app.kubernetes.io/a"]-`,
		`workload.labels["a=b"]=c=d`:              `workload.labels["a=b"]=c=d`,
		`workload.labels["a\"]"]=c`:               `workload.labels["a\"]"]=c`,
		`workload.labels.my-team=a`:               `workload.labels["my-team"]=a`,
		`workload.labels.my-team-`:                `workload.labels["my-team"]-`,
		`workload.labels.shop/team-`:              `workload.labels["shop/team"]-`,
		`pods[0].labels.tier=gold`:                `pods[0].labels.tier=gold`,
		`pods[0]-`:                                `pods[0]-`,
		`["update"]=1`:                            `update=1`,

		``:                               `the name of a fact is empty`,
		`=3`:                             `the name of a fact is empty`,
		`-`:                              `the name of a fact is empty`,
		`update`:                         `there is no value`,
		`update.`:                        `"." is no part of a path`,
		`a..b=1`:                         `the name of a fact is empty`,
		`a.[0]=1`:                        `".[0]=1" is no part of a path`,
		`a[0]b=1`:                        `"b=1" is no part of a path`,
		`a[-1]=1`:                        `a bracket has an index`,
		`a[1=1`:                          `a bracket has an index`,
		`a[99999999999]=1`:               `a bracket has an index`,
		`a["b=1`:                         `a quoted key does not end`,
		`a["b"=1`:                        `the bracket of key "b" is not closed`,
		`a b=1`:                          `" b=1" is no part of a path`,
		`a` + long + `=1`:                `may have at most 4096`,
		strings.Repeat("a.", 32) + `a=1`: `a path has at most 32 parts`,
	} {
		got, err := ParseChanges([]string{text})
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%.80q: error %.200v, want %q", text, err, want)
		case err == nil && fmt.Sprint(got[0]) != want:
			t.Errorf("%q: got %v, want %s", text, got[0], want)
		}
	}
}

func TestChangesAreBounded(t *testing.T) {
	many := make([]string, MaxChanges+1)
	for i := range many {
		many[i] = fmt.Sprintf("a%d=1", i)
	}
	if _, err := ParseChanges(many); err == nil || !strings.Contains(err.Error(), "17 facts are changed, and at most 16 may be") {
		t.Errorf("of too many: %v", err)
	}
	if got, err := ParseChanges(many[:MaxChanges]); err != nil || len(got) != MaxChanges {
		t.Errorf("of as many as may be: %v", err)
	}
	half := "a=" + strings.Repeat("x", MaxBytes/2)
	if _, err := ParseChanges([]string{half, "b" + half}); err == nil || !strings.Contains(err.Error(), "may have at most 4096") {
		t.Errorf("of too many bytes together: %v", err)
	}
	if _, err := ParseChanges([]string{"a.b=1", `a["b"]-`}); err == nil || err.Error() != "a.b is changed twice" {
		t.Errorf("of one fact twice: %v", err)
	}
}

func FuzzParseChanges(f *testing.F) {
	for _, text := range []string{`a.b["c"][0]=1`, `a-`, `a["\u00e9"]=`, `a["b`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseChanges([]string{text})
		if err != nil {
			return
		}
		again, err := ParseChanges([]string{all[0].String()})
		if len(all[0].String()) <= MaxBytes && (err != nil || again[0].String() != all[0].String()) {
			t.Errorf("%q is written as %q, which is read as %v: %v", text, all[0], again, err)
		}
	})
}
