// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
)

func TestDisk(t *testing.T) {
	d := &disk{Dir: filepath.Join(t.TempDir(), "new")}
	if got, err := d.Read(); got != nil || err != nil {
		t.Errorf("before anything is written: %v, %v", got, err)
	}
	one := stored{Name: "b", Canary: []string{"shop"}, Since: time.Unix(1, 0).UTC(), Files: map[string]string{"b.rego": "package b"}}
	first := []stored{{Name: "a", Files: map[string]string{"a.rego": "package a\n"}}, one}
	for _, bundles := range [][]stored{first, {one}, {}} {
		if err := d.Write(bundles); err != nil {
			t.Fatal(err)
		}
		got, err := d.Read()
		if diff := cmp.Diff(bundles, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	if err := d.Write(first); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(d.Dir); err != nil || len(left) != 1 {
		t.Errorf("files are left behind: %v, %v", left, err)
	}
	path := filepath.Join(d.Dir, diskFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ data, want string }{
		"one that is torn":            {string(whole[:len(whole)-3]), "it was torn or changed"},
		"one that is changed":         {strings.Replace(string(whole), "package a", "package x", 1), "it was torn or changed"},
		"one that is empty":           {"", "it was torn or changed"},
		"one that is of another form": {bundlerevision.ArchiveDigest([]byte("{}")) + "\n{}", "cannot unmarshal"},
		"one that is too large":       {strings.Repeat("x", mostOnDisk+1), "more than 67108864 bytes"},
	} {
		if err := os.WriteFile(path, []byte(tc.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Read(); got != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if err := d.Write([]stored{{Name: "a", Files: map[string]string{"a": strings.Repeat("x", mostOnDisk)}}}); err == nil || !strings.Contains(err.Error(), "more than 67108864") {
		t.Errorf("got %v", err)
	}
	if err := (&disk{Dir: path}).Write(first); err == nil {
		t.Error("a file is no directory")
	}
}

// What is active is on disk, and nothing else; it decides after a start without
// the API server.
func TestTheDiskHasWhatIsActive(t *testing.T) {
	d := &disk{Dir: t.TempDir()}
	names := func() string {
		t.Helper()
		bundles, err := d.Read()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, b := range bundles {
			out = append(out, b.Name)
		}
		return strings.Join(out, " ")
	}
	l := testLibrary(t)
	since := time.Unix(1, 0).UTC()
	if err := l.PutStages(t.Context(), platform("a"), Stages{Enforced: made(t, platform("a"), hold("a", "One", "true"), bundle.WithSince(since))}); err != nil {
		t.Fatal(err)
	}
	if names() != "" {
		t.Error("it is written before all bundles are in")
	}
	l.KeepOn(d)
	if names() != "a" {
		t.Errorf("on disk are %q", names())
	}
	next := testLibrary(t)
	if n, err := next.RestoreStored(t.Context(), d); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	want(t, next, "One")
	if got := next.BundleStages(platform("a")).Enforced.Since; !got.Equal(since) {
		t.Errorf("it was let in at %s", got)
	}
	put(t, l, platform("b"), hold("b", "Two", "true"))
	if err := l.RemoveBundle(t.Context(), platform("a")); err != nil {
		t.Fatal(err)
	}
	if names() != "b" {
		t.Errorf("on disk are %q", names())
	}

	if err := d.Write([]stored{{Name: "bad", Files: broken}, {Name: "good", Files: hold("b", "Two", "true")}}); err != nil {
		t.Fatal(err)
	}
	last := testLibrary(t)
	if n, err := last.RestoreStored(t.Context(), d); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	if got := reasonsIn(last, "shop"); !strings.HasPrefix(got, "Error bundle bad takes part in this decision and is missing: ") {
		t.Errorf("with a bundle that does not compile it holds for %q", got)
	}
	if active(last, platform("good")) == "" {
		t.Error("the others do not stand")
	}
	if err := os.WriteFile(filepath.Join(d.Dir, diskFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := last.RestoreStored(t.Context(), d); err == nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

// A canary and a tenant's bundle decide after a start where they did before.
func TestTheDiskKnowsWhereBundlesHold(t *testing.T) {
	d := &disk{Dir: t.TempDir()}
	l := testLibrary(t)
	l.KeepOn(d)
	key := platform("freeze")
	if err := l.PutStages(t.Context(), key, Stages{Canary: made(t, key, hold("a", "Canary", "true"), bundle.AsCanary("shop"))}); err != nil {
		t.Fatal(err)
	}
	put(t, l, tenant("bank", "own"), hold("b", "Own", "true"))
	next := testLibrary(t)
	if n, err := next.RestoreStored(t.Context(), d); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	want(t, next, "Canary")
	wantIn(t, next, "bank", "Own")
	wantIn(t, next, "else", "")
}

// A bundle that should decide and cannot is missing after a start without the API server too.
func TestTheDiskHasWhatIsMissing(t *testing.T) {
	d := &disk{Dir: t.TempDir()}
	l := testLibrary(t)
	put(t, l, platform("a"), hold("a", "One", "true"))
	l.KeepOn(d)
	own, canary := tenant("shop", "own"), platform("next")
	for key, m := range map[Key]engine.Missing{
		own:    missingFromDisk(own, nil, errors.New("its archive is gone")),
		canary: missingFromDisk(canary, []string{"bank"}, errors.New("its archive is gone")),
	} {
		if err := l.PutStages(t.Context(), key, Stages{Missing: []engine.Missing{m}}); err != nil {
			t.Fatal(err)
		}
	}
	next := testLibrary(t)
	if n, err := next.RestoreStored(t.Context(), d); err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
	for ns, reasons := range map[string]string{
		"shop":  "Error bundle shop/own takes part in this decision and is missing: its archive is gone",
		"bank":  "Error bundle next takes part in this decision and is missing: its archive is gone",
		"other": "One",
	} {
		wantIn(t, next, ns, reasons)
	}
}
