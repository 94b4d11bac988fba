// SPDX-License-Identifier: Apache-2.0

// Package annotationtest has texts that a user may write into any annotation, for tests of the code that reads
// annotations.
package annotationtest

import (
	"strings"
	"testing"
)

// HostileTexts are texts that are not what a reader of JSON expects.
func HostileTexts() []string {
	return []string{
		"", " ", "null", "[]", "{}", "0", "-1", "1e999", `""`, `"x"`, "true", "{", "[", "\x00", "\xff",
		`{"a":null}`, `{"":null}`, `[null]`, `[[null]]`, `{"a":[null]}`, `{"a":{"a":null}}`, `{"a":{}}`, `{"a":[]}`, `{"a":1}`, `{"a":"x"}`,
		`{"lastContainerStatuses":null,"containerBatchesRecord":[null],"nextContainerImages":null}`,
		`{"set":{"lastContainerStatuses":{"a":null}}}`, `{"containers":null}`, `{"containers":[null]}`,
		`[{"name":null,"livenessProbe":null}]`, `[{"name":"a","livenessProbe":{}}]`, `[{"reach":null}]`,
		"TZ=", "TZ=x", "CRON_TZ=", "CRON_TZ= ", "TZ= ", "@every", "@every 0s", "* * * * *",
		strings.Repeat("[", 1<<14), strings.Repeat(`{"a":`, 1<<14), `{"a":"` + strings.Repeat("x", 256<<10) + `"}`,
		"[" + strings.Repeat("null,", 50_000) + "null]",
	}
}

// AddHostile makes a corpus for a fuzz test of the texts.
func AddHostile(f *testing.F) {
	for _, text := range HostileTexts() {
		f.Add(text)
	}
}
