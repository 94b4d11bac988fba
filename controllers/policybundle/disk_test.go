package policybundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestDisk(t *testing.T) {
	d := &Disk{Dir: filepath.Join(t.TempDir(), "new")}
	if got, err := d.Read(); got != nil || err != nil {
		t.Errorf("before anything is written: %v, %v", got, err)
	}
	first := map[string]map[string]string{"a": {"a.rego": "package a\n"}, "b": {"b.rego": "package b"}}
	for _, bundles := range []map[string]map[string]string{first, {"b": {"b.rego": "package b"}}, {}} {
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
		"one that is of another form": {checksum([]byte("[]")) + "\n[]", "cannot unmarshal"},
		"one that is too large":       {strings.Repeat("x", mostOnDisk+1), "more than 67108864 bytes"},
	} {
		if err := os.WriteFile(path, []byte(tc.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Read(); got != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if err := d.Write(map[string]map[string]string{"a": {"a": strings.Repeat("x", mostOnDisk)}}); err == nil || !strings.Contains(err.Error(), "more than 67108864") {
		t.Errorf("got %v", err)
	}
	if err := (&Disk{Dir: path}).Write(first); err == nil {
		t.Error("a file is no directory")
	}
}

// What is active is on disk, and nothing else; it decides after a start without
// the API server.
func TestTheDiskHasWhatIsActive(t *testing.T) {
	d := &Disk{Dir: t.TempDir()}
	names := func() string {
		t.Helper()
		bundles, err := d.Read()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for name := range bundles {
			out = append(out, name)
		}
		return strings.Join(out, " ")
	}
	l, _ := newLibrary(t)
	admit(t, l, "a", hold("a", "One", "true"))
	if names() != "" {
		t.Error("it is written before all bundles are in")
	}
	l.KeepOn(d)
	if names() != "a" {
		t.Errorf("on disk are %q", names())
	}
	refuse(t, l, "a", broken, "CompileFailed", "a.rego:2:")
	next, _ := newLibrary(t)
	if n, err := next.Restore(t.Context(), d); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	want(t, next, "One")
	admit(t, l, "b", hold("b", "Two", "true"))
	if err := l.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if names() != "b" {
		t.Errorf("on disk are %q", names())
	}

	if err := d.Write(map[string]map[string]string{"bad": broken, "good": hold("b", "Two", "true")}); err != nil {
		t.Fatal(err)
	}
	last, _ := newLibrary(t)
	if n, err := last.Restore(t.Context(), d); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	want(t, last, "Two")
	if err := os.WriteFile(filepath.Join(d.Dir, diskFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := last.Restore(t.Context(), d); err == nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

// What was restored goes when the API server says that it is gone.
func TestWhatIsGoneMeanwhile(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{})
	c.apply(t, "kept", hold("kept", "Kept", "true"))
	m := newManager(t, c, false)
	admit(t, m.Library, "gone", hold("gone", "Gone", "true"))
	want(t, m.Library, "Gone")
	m.load()
	want(t, m.Library, "Kept")
}
