package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/regatta-sh/regatta/engine/bundle"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		tenant bool
		files  map[string]string
		want   []string // parts of the problems, in order
	}{
		"a hold": {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if true"}},
		"a hold, a rank, a helper and data beside them": {files: map[string]string{
			"a.rego":                     "package extend.rollout.a\nhold contains {} if f(1)\nrank := {}\nf(x) if x > data.extend.rollout.a.limits.x",
			"extend/rollout/a/data.json": `{"limits": {"x": 1}}`,
		}},
		"settings":                    {files: map[string]string{"a.rego": "package extend.rollout.a\nsettings := {}"}},
		"a decision that is replaced": {files: map[string]string{"a.rego": "package override.rollout\nplan := {}"}},
		"a package for others":        {files: map[string]string{"a.rego": "package extend.rollout.a\nimport data.extend.rollout.calendar\nhold contains {} if calendar.closed", "b.rego": "package extend.rollout.calendar\nclosed := true"}},
		"tests beside":                {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "a_test.rego": "package extend.rollout.a_test\ntest_x if true"}},
		"a tenant holds":              {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if true\nrank := {}"}},
		"a tenant denies":             {tenant: true, files: map[string]string{"a.rego": "package extend.protection.a\ndeny contains {} if true"}},
		"a tenant guards":             {tenant: true, files: map[string]string{"a.rego": "package extend.protection.a\nguard contains {} if true"}},

		"no policy at all":              {files: map[string]string{}, want: []string{"own:1:1: the bundle has no policy"}},
		"a built-in package":            {files: map[string]string{"a.rego": "package rollout\nplan := {}"}, want: []string{"a.rego:1:1: package rollout is not one a bundle may have: allowed are extend.<domain>.<name> and override.<domain>, where the domain is one of injection, "}},
		"a package of a helper library": {files: map[string]string{"a.rego": "package lib.x\nx := 1"}, want: []string{"a.rego:1:1: package lib.x is not one"}},
		"a domain that does not exist":  {files: map[string]string{"a.rego": "package extend.rolout.a\nhold contains {}"}, want: []string{"a.rego:1:1: package extend.rolout.a is not one"}},
		"too short":                     {files: map[string]string{"a.rego": "package extend.rollout\nhold contains {}"}, want: []string{"a.rego:1:1: package extend.rollout is not one"}},
		"too long":                      {files: map[string]string{"a.rego": "package extend.rollout.a.b\nhold contains {}"}, want: []string{"a.rego:1:1: package extend.rollout.a.b is not one"}},
		"a point as a package":          {files: map[string]string{"a.rego": "package override.rollout.plan\nx := 1"}, want: []string{"a.rego:1:1: package override.rollout.plan: a decision is replaced by the rule plan in package override.rollout"}},
		"a misspelt verb":               {files: map[string]string{"a.rego": "package extend.rollout.a\nholds contains {}"}, want: []string{"a.rego:1:1: package extend.rollout.a extends nothing: it needs one of the rules hold, rank, settings"}},
		"a misspelt point":              {files: map[string]string{"a.rego": "package override.rollout\nplann := {}"}, want: []string{"a.rego:1:1: package override.rollout replaces nothing: it needs a rule named like a point of rollout: change, plan"}},
		"a verb of another domain":      {files: map[string]string{"a.rego": "package extend.rollout.a\ndeny contains {}"}, want: []string{"a.rego:2:1: deny means nothing in rollout, where a package may have hold, rank, settings"}},
		"a guard of another domain":     {files: map[string]string{"a.rego": "package extend.rollout.a\nguard contains {}"}, want: []string{"a.rego:2:1: guard means nothing in rollout, where a package may have hold, rank, settings"}},
		"a hold that is no set":         {files: map[string]string{"a.rego": "package extend.rollout.a\nhold := {}"}, want: []string{"a.rego:2:1: hold must be a set"}},
		"a hold that is an object":      {files: map[string]string{"a.rego": "package extend.rollout.a\nhold.x := {}"}, want: []string{"a.rego:2:1: hold must be a set"}},
		"a rank that is a function":     {files: map[string]string{"a.rego": "package extend.rollout.a\nrank(x) := x"}, want: []string{"a.rego:2:1: rank must not be a function"}},
		"a test in a built-in package":  {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "a_test.rego": "package rollout\nplan := 1"}, want: []string{"a_test.rego:1:1: package rollout: tests are in a package below"}},
		"data at the root":              {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "data.json": `{}`}, want: []string{"data.json:1:1: data must be in a folder"}},
		"data that poses as a hold":     {files: map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "extend/rollout/b/data.yaml": `hold: [{}]`}, want: []string{"extend/rollout/b:1:1: hold must be a rule, not data"}},

		"unification":          {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if {\n\tx = input.update\n\tx == 5\n}"}, want: []string{"a.rego:3:2: = unifies"}},
		"destructuring is not": {files: map[string]string{"a.rego": "package extend.rollout.a\nhold contains {} if {\n\t[x, y] := [1, 2]\n\tsome i, z in [x, y]\n\ti == z\n}"}},

		"a tenant replaces":         {tenant: true, files: map[string]string{"a.rego": "package override.rollout\nplan := {}"}, want: []string{"a.rego:1:1: package override.rollout: only platform engineers may replace"}},
		"a tenant changes settings": {tenant: true, files: map[string]string{"a.rego": "package extend.rollout.a\nsettings := {}"}, want: []string{"a.rego:2:1: settings (change a documented knob) is for platform engineers; a bundle of a namespace may have hold, rank"}},
		"a tenant breaks glass":     {tenant: true, files: map[string]string{"a.rego": "package extend.protection.a\nexempt contains {}"}, want: []string{"a.rego:2:1: exempt (break glass) is for platform engineers"}},
		"a tenant injects":          {tenant: true, files: map[string]string{"a.rego": "package extend.injection.a\nadd := {}"}, want: []string{"a.rego:1:1: package extend.injection.a: a bundle of a namespace may have"}},
	} {
		t.Run(name, func(t *testing.T) {
			var opts []bundle.Option
			if tc.tenant {
				opts = append(opts, bundle.AsTenant("shop"))
			}
			b, err := bundle.FromFiles("own", tc.files, opts...)
			if err != nil {
				t.Fatal(err)
			}
			got := b.Check()
			if len(got) != len(tc.want) {
				t.Fatalf("got\n%v\nwant %q", got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i].String(), want) {
					t.Errorf("got  %s\nwant %s", got[i], want)
				}
			}
		})
	}
}

func TestReadingReportsEveryFile(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"two files that do not parse": {map[string]string{"a.rego": "package a\nx = {", "b.rego": "packag b"}, []string{"a.rego:2:", "b.rego:1:"}},
		"data that is no object":      {map[string]string{"data.json": "[1]"}, []string{"data.json:1:1: reading data"}},
		"data that is no JSON":        {map[string]string{"data.json": "{"}, []string{"data.json:1:1: reading data"}},
		"data that is there twice":    {map[string]string{"x/data.json": `{"a": 1}`, "x/data.yaml": "a: 2"}, []string{"x/data.yaml:1:1: the data at a is there twice"}},
		"data below something else":   {map[string]string{"data.json": `{"x": 1}`, "x/data.json": "{}"}, []string{"x/data.json:1:1: the data at x is there twice"}},
		"a key that is there twice":   {map[string]string{"data.yaml": "a: 1\na: 2"}, []string{"data.yaml:1:1: reading data"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bundle.FromFiles("own", tc.files)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
}

func TestFromFS(t *testing.T) {
	b, err := bundle.FromFS("own", fstest.MapFS{
		"rollout/plan.rego":      {Data: []byte("package rollout")},
		"rollout/plan_test.rego": {Data: []byte("package rollout_test")},
		"examples/x/x.rego":      {Data: []byte("not rego")},
		".git/x.rego":            {Data: []byte("not rego")},
		"README.md":              {Data: []byte("# x")},
		"lib/data.json":          {Data: []byte(`{"a": 12345678901234567890}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Modules) != 1 || len(b.Tests) != 1 || len(b.Files) != 3 || len(b.Data) != 1 {
		t.Errorf("got %v, %v, %v, %v", b.Modules, b.Tests, b.Files, b.Data)
	}
	big := fstest.MapFS{"a.rego": {Data: bytes.Repeat([]byte(" "), 1<<20+1)}}
	var large bundle.TooLargeError
	if _, err := bundle.FromFS("own", big); !errors.As(err, &large) {
		t.Errorf("a file that is too large was read: %v", err)
	}
}

func TestTheRevisionIsThatOfThePolicy(t *testing.T) {
	of := func(files map[string]string) string {
		b, err := bundle.FromFiles("own", files)
		if err != nil {
			t.Fatal(err)
		}
		return b.Revision
	}
	base := of(map[string]string{"a.rego": "package a", "b.rego": "package b"})
	for name, tc := range map[string]struct {
		files map[string]string
		same  bool
	}{
		"the same files":        {map[string]string{"b.rego": "package b", "/a.rego": "package a"}, true},
		"with a test":           {map[string]string{"a.rego": "package a", "b.rego": "package b", "a_test.rego": "package a_test"}, true},
		"with another file":     {map[string]string{"a.rego": "package a", "b.rego": "package b", "README.md": "x"}, true},
		"with a changed policy": {map[string]string{"a.rego": "package a\nx := 1", "b.rego": "package b"}, false},
		"with data":             {map[string]string{"a.rego": "package a", "b.rego": "package b", "data.json": "{}"}, false},
	} {
		if got := of(tc.files); (got == base) != tc.same {
			t.Errorf("%s: %s, at first %s", name, got, base)
		}
	}
}

func pack(t *testing.T, entries ...tar.Header) func(bodies ...string) *bytes.Buffer {
	return func(bodies ...string) *bytes.Buffer {
		t.Helper()
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		w := tar.NewWriter(zipped)
		for i, h := range entries {
			h.Mode = 0o644
			if h.Typeflag == 0 {
				h.Typeflag, h.Size = tar.TypeReg, int64(len(bodies[i]))
			}
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if h.Size > 0 {
				if _, err := w.Write([]byte(bodies[i])); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := errors.Join(w.Close(), zipped.Close()); err != nil {
			t.Fatal(err)
		}
		return &out
	}
}

func TestFromArchive(t *testing.T) {
	for name, tc := range map[string]struct {
		archive *bytes.Buffer
		files   int
		err     string
	}{
		"a policy and a manifest": {archive: pack(t, tar.Header{Name: "/a.rego"}, tar.Header{Name: ".manifest"})("package a", "{}"), files: 1},
		"a way out":               {archive: pack(t, tar.Header{Name: "../a.rego"})("package a"), err: "outside of the bundle"},
		"a link":                  {archive: pack(t, tar.Header{Name: "a.rego", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})("")},
		"a file twice":            {archive: pack(t, tar.Header{Name: "a.rego"}, tar.Header{Name: "/a.rego"})("package a", "package b"), err: "there twice"},
		"a file too large":        {archive: pack(t, tar.Header{Name: "x"})(strings.Repeat(" ", 1<<20+1)), err: "too large"},
		"no archive":              {archive: bytes.NewBufferString("hello"), err: "unpacking"},
		"nothing":                 {archive: &bytes.Buffer{}, err: "unpacking"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := bundle.FromArchive("own", tc.archive, nil)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || len(b.Files) != tc.files {
				t.Errorf("got %v, %v", b, err)
			}
		})
	}
	var headers []tar.Header
	var bodies []string
	for i := range 20 {
		headers = append(headers, tar.Header{Name: strings.Repeat("x", i+1)})
		bodies = append(bodies, strings.Repeat(" ", 1<<20))
	}
	var large bundle.TooLargeError
	if _, err := bundle.FromArchive("own", pack(t, headers...)(bodies...), nil); !errors.As(err, &large) {
		t.Errorf("20 MiB were unpacked: %v", err)
	}
}

func TestOnlySignedArchivesAreRead(t *testing.T) {
	const secret = "a secret that is long enough"
	policy := "package extend.rollout.a\nrank := {}\n"
	sign := func(files map[string]string, with string) string {
		var infos []opabundle.FileInfo
		hasher, err := opabundle.NewSignatureHasher(opabundle.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			sum, err := hasher.HashFile([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			infos = append(infos, opabundle.NewFile(name, hex.EncodeToString(sum), "SHA-256"))
		}
		token, err := opabundle.GenerateSignedToken(infos, opabundle.NewSigningConfig(with, "HS256", ""), "k")
		if err != nil {
			t.Fatal(err)
		}
		return `{"signatures": ["` + token + `"]}`
	}
	keys := &bundle.Keys{Public: map[string]*opabundle.KeyConfig{"k": {Key: secret, Algorithm: "HS256"}}, ID: "k"}
	for name, tc := range map[string]struct {
		signed    map[string]string
		signature string // of something else
		files     map[string]string
		err       string
	}{
		"signed":                       {signed: map[string]string{"a.rego": policy}, files: map[string]string{"a.rego": policy}},
		"signed with a slash in front": {signed: map[string]string{"/a.rego": policy}, files: map[string]string{"a.rego": policy}},
		"not signed":                   {files: map[string]string{"a.rego": policy}, err: "there is no .signatures.json"},
		"changed after signing":        {signed: map[string]string{"a.rego": policy}, files: map[string]string{"a.rego": policy + "x := 1"}, err: "digest mismatch"},
		"a file more":                  {signed: map[string]string{"a.rego": policy}, files: map[string]string{"a.rego": policy, "b.rego": policy}, err: "not included"},
		"a file less":                  {signed: map[string]string{"a.rego": policy, "b.rego": policy}, files: map[string]string{"a.rego": policy}, err: "b.rego was signed but is missing"},
		"signed by somebody else":      {signature: "another secret, also long", signed: map[string]string{"a.rego": policy}, files: map[string]string{"a.rego": policy}, err: "verif"},
	} {
		t.Run(name, func(t *testing.T) {
			var headers []tar.Header
			var bodies []string
			for name, text := range tc.files {
				headers, bodies = append(headers, tar.Header{Name: name}), append(bodies, text)
			}
			if tc.signed != nil {
				with := secret
				if tc.signature != "" {
					with = tc.signature
				}
				headers, bodies = append(headers, tar.Header{Name: ".signatures.json"}), append(bodies, sign(tc.signed, with))
			}
			_, err := bundle.FromArchive("own", pack(t, headers...)(bodies...), keys)
			if tc.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var refused bundle.SignatureError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}

func TestPackAndReadAgain(t *testing.T) {
	b, err := bundle.FromFiles("own", map[string]string{"a.rego": "package extend.rollout.a\nrank := {}", "a_test.rego": "package extend.rollout.a_test"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := b.Pack(&out); err != nil {
		t.Fatal(err)
	}
	again, err := bundle.FromArchive("own", &out, nil)
	if err != nil || again.Revision != b.Revision || len(again.Tests) != 1 {
		t.Errorf("got %v, %v", again, err)
	}
}

func FuzzFromArchive(f *testing.F) {
	f.Add([]byte("a.rego"), []byte("package extend.rollout.a\nhold contains {} if input.x"))
	f.Add([]byte("extend/rollout/a/data.yaml"), []byte("a: &x [1]\nb: *x"))
	f.Add([]byte("/../x.rego"), []byte("package override.rollout\nplan := {}"))
	f.Fuzz(func(t *testing.T, name, body []byte) {
		if len(body) > 10_000 {
			return
		}
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		w := tar.NewWriter(zipped)
		if w.WriteHeader(&tar.Header{Name: string(name), Mode: 0o644, Size: int64(len(body)), Typeflag: tar.TypeReg}) != nil {
			return
		}
		_, _ = w.Write(body)
		_ = errors.Join(w.Close(), zipped.Close())
		if b, err := bundle.FromArchive("own", &out, nil); err == nil {
			b.Check() // must not panic, whatever the packages and rules are
		}
		if b, err := bundle.FromArchive("own", bytes.NewReader(body), nil, bundle.AsTenant("shop")); err == nil {
			b.Check()
		}
	})
}
