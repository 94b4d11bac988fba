// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/bundle"
)

// entry is a file of an archive that is made by hand.
type entry struct {
	tar.Header
	body string
}

func file(name, body string) entry { return entry{tar.Header{Name: name}, body} }

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if e.Mode = 0o644; e.Typeflag == 0 {
			e.Typeflag, e.Size = tar.TypeReg, int64(len(e.body))
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if e.Size > 0 {
			if _, err := w.Write([]byte(e.body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return zip(t, out.Bytes())
}

func zip(t testing.TB, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sparse has files of which each says that it is one MiB of zeros and takes next
// to nothing: what is unzipped is small, what is read is not. The writer of
// package tar makes none, so the test gives it another name and then corrects that.
func sparse(t testing.TB, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := range n {
		h := &tar.Header{Typeflag: tar.TypeReg, Mode: 0o644, Name: fmt.Sprintf("f%d.txt", i), Size: 512, Format: tar.FormatPAX, PAXRecords: map[string]string{
			"QNU.sparse.major": "1", "QNU.sparse.minor": "0", "QNU.sparse.realsize": "1048576", "QNU.sparse.name": fmt.Sprintf("f%d.txt", i),
		}}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		holes := make([]byte, 512)
		copy(holes, "1\n1048576\n0\n")
		if _, err := w.Write(holes); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return zip(t, bytes.ReplaceAll(out.Bytes(), []byte("QNU."), []byte("GNU.")))
}

// laughs is YAML that is 10^9 elements when its aliases are written out.
func laughs() string {
	out := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		out += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	return out
}

func TestFromArchive(t *testing.T) {
	many := func(n int, body string) (out []entry) {
		for i := range n {
			out = append(out, file(fmt.Sprintf("f%d.txt", i), body))
		}
		return out
	}
	for name, tc := range map[string]struct {
		archive []byte
		files   int
		err     string // TooLargeError if it is "large"
	}{
		"a policy and a manifest":                      {archive: archive(t, file("/a.rego", "package a"), file(".manifest", "{}")), files: 2},
		"what is no part of a bundle":                  {archive: archive(t, file("/a.rego", "package a"), file("README.md", "# A")), files: 1},
		"folders":                                      {archive: archive(t, entry{Header: tar.Header{Name: "./x/", Typeflag: tar.TypeDir}}, file("./x/a.rego", "package a")), files: 1},
		"a way out":                                    {archive: archive(t, file("../a.rego", "package a")), err: `"../a.rego" is outside of the bundle`},
		"a way out from the root":                      {archive: archive(t, file("/../a.rego", "package a")), err: "outside of the bundle"},
		"a way out that goes in first":                 {archive: archive(t, file("x/../../a.rego", "package a")), err: "outside of the bundle"},
		"two slashes in front":                         {archive: archive(t, file("//etc/a.rego", "package a")), err: "outside of the bundle"},
		"a way out of Windows":                         {archive: archive(t, file(`..\a.rego`, "package a")), err: "outside of the bundle"},
		"a name with a new line, which would fake log": {archive: archive(t, file("a\nb.rego", "package a")), err: "no path that a bundle may have"},
		"a symbolic link":                              {archive: archive(t, entry{Header: tar.Header{Name: "a.rego", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}), err: "a.rego is a link or a device"},
		"a hard link":                                  {archive: archive(t, entry{Header: tar.Header{Name: "a.rego", Typeflag: tar.TypeLink, Linkname: "../secret"}}), err: "a.rego is a link or a device"},
		"a device":                                     {archive: archive(t, entry{Header: tar.Header{Name: "a.rego", Typeflag: tar.TypeChar}}), err: "a.rego is a link or a device"},
		"a file twice":                                 {archive: archive(t, file("a.rego", "package a"), file("/a.rego", "package b")), err: "a.rego is there twice"},
		"a file too large":                             {archive: archive(t, file("x", strings.Repeat(" ", 1<<20+1))), err: "large"},
		"files that are too large together":            {archive: archive(t, many(20, strings.Repeat(" ", 1<<20))...), err: "large"},
		"too many files":                               {archive: archive(t, many(2001, "x")...), err: "large"},
		"a zip bomb: 64 MiB of zeros in 64 KiB":        {archive: archive(t, file("a.rego", strings.Repeat("\x00", 64<<20))), err: "large"},
		"a bomb of sparse files":                       {archive: sparse(t, 100), err: "large"},
		"a delta bundle":                               {archive: archive(t, file("patch.json", `{"data": []}`)), err: "patch.json makes this a delta bundle"},
		"compiled policy":                              {archive: archive(t, file("policy.wasm", "\x00asm")), err: "policy.wasm is compiled policy"},
		"a manifest that only OPA would read":          {archive: archive(t, file("x/.manifest", "{}")), err: "x/.manifest must be at the root"},
		"a signature that only OPA would read":         {archive: archive(t, file("x/.signatures.json", "{}")), err: "x/.signatures.json must be at the root"},
		"a binary manifest":                            {archive: archive(t, file(".manifest.pb", "")), err: "the manifest must be JSON"},
		"a signature that is none":                     {archive: archive(t, file(".signatures.json", `{"signatures": ["x"]}`)), err: "the signature is no JWT"},
		"a billion laughs":                             {archive: archive(t, file("data.yaml", laughs())), err: "data.yaml:1:1: reading data"},
		"JSON that is too deep":                        {archive: archive(t, file("data.json", strings.Repeat("[", 1<<20))), err: "reading data: invalid character '[' exceeded max depth"},
		"an archive that ends too early":               {archive: archive(t, file("a.rego", strings.Repeat("package a\n", 1000)))[:80], err: "unpacking: the file ends too early"},
		"no archive":                                   {archive: []byte("hello"), err: "unpacking: the file"},
		"a file of nothing":                            {archive: nil, err: "unpacking: the file is empty"},
		"text that is longer than a header":            {archive: []byte("hello, this is text"), err: "unpacking: the file is no .tar.gz file"},
		"zipped, but no archive":                       {archive: zip(t, []byte(strings.Repeat("hello", 300))), err: "unpacking"},
		"nothing":                                      {err: "unpacking"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := bundle.FromArchive("own", bytes.NewReader(tc.archive), nil)
			var large bundle.TooLargeError
			switch {
			case tc.err == "large" && !errors.As(err, &large):
				t.Errorf("got %v, want that it is too large", err)
			case tc.err != "" && tc.err != "large" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got %v, want %q", err, tc.err)
			case tc.err == "" && (err != nil || len(b.Files) != tc.files):
				t.Errorf("got %v, %v", b, err)
			}
		})
	}
}

func FuzzFromArchive(f *testing.F) {
	f.Add([]byte("a.rego"), []byte("package extend.rollout.a\nhold contains {} if input.x"))
	f.Add([]byte("extend/rollout/a/data.yaml"), []byte("a: &x [1]\nb: *x"))
	f.Add([]byte("/../x.rego"), []byte("package override.rollout\nplan := {}"))
	f.Add([]byte(".manifest"), []byte(`{"roots": ["a", "a/b"], "metadata": {"regatta": {"sequence": 1}}}`))
	f.Add([]byte(".signatures.json"), []byte(`{"signatures": ["e30.e30.x"]}`))
	f.Fuzz(func(t *testing.T, name, body []byte) {
		if len(body) > 10_000 {
			return
		}
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		if w.WriteHeader(&tar.Header{Name: string(name), Mode: 0o644, Size: int64(len(body)), Typeflag: tar.TypeReg}) != nil {
			return
		}
		_, _ = w.Write(body)
		_ = w.Close()
		for _, text := range [][]byte{zip(t, out.Bytes()), body} {
			b, err := bundle.FromArchive("own", bytes.NewReader(text), nil, bundle.AsTenant("shop"))
			if err != nil {
				continue
			}
			_ = b.CheckContract() // must not panic, whatever the packages and rules are
			b.ManifestSequence()
			if err := b.BuildArchive(&bytes.Buffer{}, bundle.Build{Tests: true}); err != nil {
				t.Errorf("what was read cannot be built: %v", err)
			}
		}
	})
}

func TestFilesArePackedAsTheyAre(t *testing.T) {
	files := map[string]string{"/a.rego": "package extend.rollout.a\n\nrank := {}\n", "./b/data.json": "{}", ".signatures.json": `{"signatures": []}`, "README.md": "x"}
	var first, again bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &again} {
		if err := bundle.PackFiles(out, files); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Error("the same files are other bytes")
	}
	var names []string
	zipped, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	for from := tar.NewReader(zipped); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "/.signatures.json /README.md /a.rego /b/data.json" {
		t.Errorf("packed are %s", got)
	}
	for name, files := range map[string]map[string]string{
		"is outside of the bundle": {"../a.rego": ""},
		"is there twice":           {"/a.rego": "", "a.rego": ""},
		"delta bundle":             {"patch.json": ""},
	} {
		if err := bundle.PackFiles(io.Discard, files); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v, want %q", files, err, name)
		}
	}
}
