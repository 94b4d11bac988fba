// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEach(t *testing.T) {
	const a, b = `{"kind": "Pod", "metadata": {"name": "a"}}`, "kind: Pod\nmetadata:\n  name: b\n"
	tests := map[string]struct{ text, want, err string }{
		"documents":       {a + "\n---\n" + b + "---\n---\n", "a b", ""},
		"a list":          {`{kind: List, items: [` + a + `, {kind: PodList, items: [{kind: Pod, metadata: {name: c}}]}]}`, "a c", ""},
		"nothing":         {"", "", ""},
		"no kind":         {a + "\n---\nmetadata: {name: x}\n", "a", "an object has no kind"},
		"no YAML":         {a + "\n---\n{", "a", "reading "},
		"the caller ends": {a + "\n---\nkind: Pod\nmetadata: {name: stop}\n---\n" + b, "a", "stopped"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "objects.yaml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var got []string
			err := ForEachObject(path, func(o *unstructured.Unstructured) error {
				if o.GetName() == "stop" {
					return errors.New("stopped")
				}
				got = append(got, o.GetName())
				return nil
			})
			if strings.Join(got, " ") != tc.want || (err == nil) != (tc.err == "") {
				t.Errorf("got %v, %v; want %s", got, err, tc.want)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), path)) {
				t.Errorf("the error is %v, want %q and the path", err, tc.err)
			}
		})
	}
	if err := ForEachObject(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}
