// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/test/install"
)

// The sample is what the chart renders by itself, so that a check without rendered objects asks about the same.
func TestTheSampleIsOfTheChart(t *testing.T) {
	root, err := install.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := install.Helm(t, root, "template", "kruise", "charts/kruise", "--kube-version", "1.36.0")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	want := "# SPDX-License-Identifier: Apache-2.0\n"
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.Contains(document, "kind: CustomResourceDefinition") || strings.Contains(document, hook+":") {
			continue
		}
		want += "---\n" + strings.TrimPrefix(document, "---\n") + "\n"
	}
	for _, change := range [][2]string{
		{`(?m)^ *#.*\n`, ""}, // comments, also those of Helm
		{`(?m)^ *helm\.sh/chart:.*\n`, ""},
		{`(?m)^( *app\.kubernetes\.io/version:).*$`, `$1 "VERSION"`},
		{`(regatta-sh/regatta:)[^"\s]+`, "${1}VERSION"},
		{`\n\n+`, "\n"},
	} {
		want = regexp.MustCompile(change[0]).ReplaceAllString(want, change[1])
	}
	want = "# SPDX-License-Identifier: Apache-2.0\n" + strings.TrimLeft(want, "\n")
	const file = "sample.yaml"
	if os.Getenv("REGATTA_WRITE_SAMPLE") != "" {
		if err := os.WriteFile(filepath.Join(root, "controllers", "cmd", "regatta", "check", file), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, sample); diff != "" {
		t.Errorf("the chart (-) renders other objects than %s (+); REGATTA_WRITE_SAMPLE=1 go test ./controllers/cmd/regatta/check -run %s writes it\n%s", file, t.Name(), diff)
	}
}
